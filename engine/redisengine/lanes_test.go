package redisengine

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// longGone makes a lane's shard have been gone for long, once its calls are over.
func longGone(t *testing.T, l *lane) {
	t.Helper()
	for over := false; !over; runtime.Gosched() {
		l.mu.Lock()
		over = l.inFlight == 0
		l.mu.Unlock()
	}
	l.known.Lock()
	defer l.known.Unlock()
	l.goneMS = min(l.goneMS, 1)
}

// A process that runs for long keeps nothing of the campaigns that are over, and
// all of those that are not.
func TestLanesOfGoneShardsAreDropped(t *testing.T) {
	b := newBench(t, 10, nil)
	// As if the process ran for an hour.
	b.e.p.since = b.e.p.since.Add(-60 * keepGone)
	ask := func(campaign uint32) (dibs.Decision, error) {
		return b.e.Claim(b.Context(), dibs.EngineClaim{Shard: dibs.ShardID{Campaign: campaign}, UserID: "ann", Key: 1, Quantity: 1})
	}
	first, err := ask(b.shard.Campaign)
	if err != nil || first.Outcome != dibs.Granted {
		t.Fatal(first, err)
	}
	for n := range uint32(20) {
		if _, err := ask(100 + n); err == nil {
			t.Fatal("a claim on a shard that Redis does not hold is decided")
		}
		for _, l := range *b.e.lanes.all.Load() {
			if l.id != b.shard {
				longGone(t, l)
			}
		}
	}
	if n := len(*b.e.lanes.all.Load()); n != 2 {
		t.Errorf("%d lanes are kept, not that of the shard and the newest", n)
	}
	if b.e.lanes.kept(b.shard) != b.l {
		t.Error("the lane of a shard that is there was dropped")
	}
	if d, err := ask(b.shard.Campaign); err != nil || !d.Replayed {
		t.Errorf("the repeat is %+v, %v", d, err)
	}
}

// A caller that found a lane just before it was dropped is answered by the lane that
// follows it.
func TestDroppedLanesAreFollowed(t *testing.T) {
	b := newBench(t, 10, nil)
	b.e.p.since = b.e.p.since.Add(-60 * keepGone)
	id := dibs.ShardID{Campaign: 8}
	ask := func() error {
		_, err := b.e.Claim(b.Context(), dibs.EngineClaim{Shard: id, UserID: "ann", Key: 1, Quantity: 1})
		return err
	}
	if err := ask(); !errors.Is(err, dibs.ErrNotOpen) {
		t.Fatalf("a claim on a shard that is not there is answered %v", err)
	}
	l := b.e.lanes.kept(id)
	longGone(t, l)
	if !l.evict(2) {
		t.Fatal("a lane that nobody needs was not dropped")
	}
	if err := l.enqueue(newWaiter(t.Context(), &dibs.EngineClaim{})); !errors.Is(err, errEvicted) {
		t.Errorf("a dropped lane is %v about a claim", err)
	}
	// It is found until another map is there.
	answered := make(chan error)
	go func() { answered <- ask() }()
	if _, err := b.e.lanes.lane(dibs.ShardID{Campaign: 9}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("who found a dropped lane is answered %v", err)
	}
	if now := b.e.lanes.kept(id); now == nil || now == l {
		t.Error("no lane has followed the one that was dropped")
	}
}

// A lane is not waited for while it gets a follower, which waits for the engine's
// lock: that is held where lanes are dropped.
func TestDroppingWaitsForNoFollower(t *testing.T) {
	b := newBench(t, 10, nil)
	b.l.known.Lock()
	b.l.goneMS = 1
	b.l.known.Unlock()
	b.l.follower.mu.Lock()
	dropped := make(chan bool, 1)
	go func() { dropped <- b.l.evict(2) }()
	select {
	case is := <-dropped:
		if is {
			t.Error("a lane that gets a follower was dropped")
		}
	case <-time.After(time.Minute):
		t.Error("dropping a lane waits for who may wait for the engine's lock")
	}
	b.l.follower.mu.Unlock()
}

// A node that has settled a campaign keeps nothing of it once it has left Redis.
func TestSettledLanesAreDropped(t *testing.T) {
	b := newBench(t, 10, func(c *dibs.Campaign, _ *dibs.ShardLoad) {
		c.StartsAt, c.EndsAt = time.Now().Add(-3*time.Hour), time.Now().Add(-2*time.Hour)
	})
	b.e.p.since = b.e.p.since.Add(-60 * keepGone)
	head, err := b.e.JournalEnd(b.Context(), b.shard)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := b.e.Lease(b.Context(), b.shard, head); err != nil || !ok {
		t.Fatal(ok, err)
	}
	other, err := Open(b.Context(), Config{URL: b.url, Durability: dibs.LevelNone})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	other.p.since = b.e.p.since
	if err := b.e.Retire(b.Context(), b.shard); err != nil {
		t.Fatal(err)
	}
	if err := other.Retire(b.Context(), b.shard); !errors.Is(err, dibs.ErrNotOpen) {
		t.Fatalf("the second to retire it hears %v", err)
	}
	for name, e := range map[string]*Engine{"who settled it": b.e, "another process": other} {
		longGone(t, e.lanes.kept(b.shard))
		if _, err := e.lanes.lane(dibs.ShardID{Campaign: 9}); err != nil {
			t.Fatal(err)
		}
		if e.lanes.kept(b.shard) != nil {
			t.Errorf("%s keeps the lane of a campaign that has left Redis", name)
		}
	}
}
