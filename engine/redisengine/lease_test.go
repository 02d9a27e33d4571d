package redisengine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// One process at a time has a shard's lease, whether the shard is open or not;
// it goes over when its holder closes, or does not renew it.
func TestLeaseGoesOver(t *testing.T) {
	r := startRedis(t)
	a, err := redisengine.Open(t.Context(), redisengine.Config{URL: r.URL(), Durability: dibs.LevelNone})
	must(t, err)
	b := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := dibs.ShardID{Campaign: 1}
	c, key := connect(t, r), "dibs:{1:0}:settler"
	lease := func(e *redisengine.Engine, want bool) {
		t.Helper()
		for kept := false; !kept; {
			asked := time.Now()
			if held, err := e.Lease(t.Context(), shard, dibs.Cursor{Epoch: 1, Seq: 7}); err != nil || held != want {
				t.Fatalf("the lease is %v, %v, want %v", held, err, want)
			}
			if !want {
				return
			}
			ttl, err := c.Do(t.Context(), c.B().Pttl().Key(key).Build()).ToInt64()
			if err != nil || ttl > dibs.LeaseTime.Milliseconds() || ttl <= 0 && time.Since(asked) < dibs.LeaseTime {
				t.Errorf("the lease lasts %d ms, %v", ttl, err)
			}
			// However slow the machine is, the lease is there for the next call.
			kept, err = c.Do(t.Context(), c.B().Pexpire().Key(key).Milliseconds(600_000).Build()).AsBool()
			must(t, err)
		}
	}
	lease(a, true)
	lease(b, false)
	lease(a, true)
	openSale(t, a, 10, nil)
	lease(a, true)
	s, err := b.Stats(t.Context(), shard)
	if err != nil || s.Settled != (dibs.Cursor{Epoch: 1, Seq: 7}) || s.Version != 1 {
		t.Errorf("another process reads %+v, %v", s, err)
	}
	must(t, a.Close(t.Context()))
	lease(b, true)
	// As if its time were over.
	must(t, c.Do(t.Context(), c.B().Del().Key(key).Build()).Error())
	d := openEngine(t, redisengine.Config{URL: r.URL()})
	lease(d, true)
	lease(b, false)
	retire(t, d, shard)
	lease(b, true)
	// One whose lease has ended does not give back that of another process.
	late, err := redisengine.Open(t.Context(), redisengine.Config{URL: r.URL(), Durability: dibs.LevelNone})
	must(t, err)
	must(t, c.Do(t.Context(), c.B().Del().Key(key).Build()).Error())
	lease(late, true)
	must(t, c.Do(t.Context(), c.B().Del().Key(key).Build()).Error())
	lease(b, true)
	must(t, late.Close(t.Context()))
	lease(d, false)
}

// Two processes race to open a shard: the later epoch wins always, and the
// other one hears that it came late unless it was open before.
func TestOpenersRace(t *testing.T) {
	r := startRedis(t)
	a := openEngine(t, redisengine.Config{URL: r.URL()})
	b := openEngine(t, redisengine.Config{URL: r.URL()})
	for round := range uint32(10) {
		shard := dibs.ShardID{Campaign: round + 1}
		load := func(epoch uint16) *dibs.ShardLoad {
			l := &dibs.ShardLoad{Epoch: epoch, StockLeft: 20_000}
			for i := range uint32(5000) {
				l.Holdings = append(l.Holdings, dibs.Holding{
					Cursor: dibs.Cursor{Epoch: 1, Seq: i + 2}, UserID: fmt.Sprint(epoch, "-", i), Quantity: 1, At: time.Now().UnixMilli(),
				})
			}
			// The ledger knows how far the journal goes: nothing is its tail.
			l.Position = dibs.Cursor{Epoch: 1, Seq: 5001}
			return l
		}
		var wg sync.WaitGroup
		var errA, errB error
		wg.Go(func() { errA = a.Open(t.Context(), bigSale(shard.Campaign, 20_000), shard, load(2)) })
		wg.Go(func() { errB = b.Open(t.Context(), bigSale(shard.Campaign, 20_000), shard, load(3)) })
		wg.Wait()
		// When the earlier one was done first, its opening is an entry that the
		// later load does not have: then the later one must not open over it.
		if errA != nil && !errors.Is(errA, dibs.ErrStale) {
			t.Errorf("round %d: the earlier epoch is opened with %v", round, errA)
		}
		if errB != nil && (errA != nil || !errors.Is(errB, dibs.ErrGap)) {
			t.Errorf("round %d: the later epoch is opened with %v, the earlier one with %v", round, errB, errA)
		}
		want := uint16(3)
		if errB != nil {
			continue
		}
		s, err := a.Stats(t.Context(), shard)
		if err != nil || s.Head.Epoch != want || s.Granted != 5000 {
			t.Errorf("round %d: open is %+v, %v", round, s, err)
		}
		if g, err := a.HoldingsOf(t.Context(), "2-0"); err != nil || len(g) != 0 {
			t.Errorf("round %d: the earlier load has left %v, %v", round, g, err)
		}
		for epoch := range want + 1 {
			if err := a.Open(t.Context(), bigSale(shard.Campaign, 20_000), shard, load(epoch)); !errors.Is(err, dibs.ErrStale) {
				t.Errorf("round %d: beside epoch %d, epoch %d is opened with %v", round, want, epoch, err)
			}
		}
	}
}
