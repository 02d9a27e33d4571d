package redisengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// bench is one open shard, whose batches the test puts together itself.
type bench struct {
	*testing.T
	e     *Engine
	l     *lane
	shard dibs.ShardID
	url   string
}

func newBench(t *testing.T, stock int64, change func(*dibs.Campaign, *dibs.ShardLoad)) *bench {
	t.Helper()
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return newBenchOn(t, r, stock, change)
}

// newBenchOn is newBench on a server of the test's own.
func newBenchOn(t *testing.T, r *servers.Redis, stock int64, change func(*dibs.Campaign, *dibs.ShardLoad)) *bench {
	t.Helper()
	e, err := Open(t.Context(), Config{URL: r.URL(), Durability: dibs.LevelNone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c := openCampaign(stock)
	load := &dibs.ShardLoad{Epoch: 1, StockLeft: stock}
	if change != nil {
		change(c, load)
	}
	b := &bench{T: t, e: e, shard: dibs.ShardID{Campaign: 7}, url: r.URL()}
	if err := e.Open(t.Context(), c, b.shard, load); err != nil {
		t.Fatal(err)
	}
	if b.l, err = e.lanes.lane(b.shard); err != nil {
		t.Fatal(err)
	}
	return b
}

// openCampaign describes a sale that is open for an hour.
func openCampaign(stock int64) *dibs.Campaign {
	now := time.Now()
	return &dibs.Campaign{
		Number: 7, Kind: dibs.Sale, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), State: dibs.Published,
		Stock: dibs.Stock{Kind: dibs.Units, Total: stock}, LimitPerUser: 1, Shards: 1, Version: 1,
	}
}

// decide has claims decided by one call, in this order.
func (b *bench) decide(reqs ...dibs.EngineClaim) []dibs.Decision {
	b.Helper()
	batch := &batch{lane: b.l}
	for _, r := range reqs {
		r.Shard = b.shard
		batch.waiters = append(batch.waiters, takenWaiter(b.Context(), &r))
	}
	all := append([]*waiter(nil), batch.waiters...)
	batch.send()
	out := make([]dibs.Decision, len(all))
	for i, t := range all {
		<-t.done
		d, err := t.decision()
		if err != nil {
			b.Fatalf("claim %d of the batch: %v", i, err)
		}
		out[i] = d
	}
	return out
}

// takenWaiter is a ticket that a call has taken.
func takenWaiter(ctx context.Context, req *dibs.EngineClaim) *waiter {
	t := newWaiter(ctx, req)
	t.state.Store(taken)
	t.born = time.Now()
	return t
}

func ask(user string, key uint64, quantity int64) dibs.EngineClaim {
	return dibs.EngineClaim{UserID: user, Key: key, Quantity: quantity}
}

// outcomesAre compares the outcomes of a batch; a repeat is "repeat".
func (b *bench) outcomesAre(got []dibs.Decision, want ...string) {
	b.Helper()
	for i, d := range got {
		is := d.Outcome.String()
		if d.Replayed {
			is = "repeat"
		}
		if is != want[i] {
			b.Errorf("claim %d of the batch is %s, want %s", i, is, want[i])
		}
	}
}

func TestUserTwiceInOneBatch(t *testing.T) {
	b := newBench(t, 100, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 3 })
	got := b.decide(ask("ann", 1, 2), ask("ann", 1, 2), ask("ann", 2, 2), ask("ann", 3, 1), ask("ann", 1, 1), ask("ann", 0, 1), ask("bob", 1, 3))
	b.outcomesAre(got, "granted", "repeat", "limit_reached", "granted", "idempotency_key_reused", "limit_reached", "granted")
	if got[1].Grant.Position != got[0].Grant.Position || got[1].Grant.At != got[0].Grant.At {
		t.Errorf("the repeat in the batch is %+v, the first result %+v", got[1].Grant, got[0].Grant)
	}
	if h := got[2].Held; len(h) != 1 || h[0] != got[0].Grant.Position {
		t.Errorf("the limit is filled by %v", h)
	}
	if h := got[5].Held; len(h) != 2 || h[0] != got[3].Grant.Position || h[1] != got[0].Grant.Position {
		t.Errorf("in the end the limit is filled by %v", h)
	}
	only := ask("ann", 9, 1)
	only.OnlyRepeat = true
	again := ask("bob", 1, 3)
	again.OnlyRepeat = true
	b.outcomesAre(b.decide(only, again), "overloaded", "repeat")
}

func TestStockEndsInTheMiddleOfABatch(t *testing.T) {
	b := newBench(t, 4, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 5 })
	got := b.decide(ask("a", 1, 1), ask("b", 1, 2), ask("c", 1, 2), ask("d", 1, 1), ask("e", 1, 1), ask("a", 1, 1))
	b.outcomesAre(got, "granted", "granted", "sold_out", "granted", "sold_out", "repeat")
	if got[2].Remaining != 1 || got[4].Remaining != 0 {
		t.Errorf("refused with %d and %d left", got[2].Remaining, got[4].Remaining)
	}
	for i, seq := range map[int]uint32{0: 2, 1: 3, 3: 4} {
		if got[i].Grant.Seq != seq {
			t.Errorf("claim %d stands at %v, want seq %d", i, got[i].Grant.Position, seq)
		}
	}
}

func TestItemsEndInTheMiddleOfABatch(t *testing.T) {
	b := newBench(t, 4, func(c *dibs.Campaign, load *dibs.ShardLoad) {
		c.Stock.Kind, c.LimitPerUser = dibs.Items, 5
		load.Items, load.FreeItems = []string{"w", "", "y", "z"}, []uint32{2, 0, 3, 1}
	})
	got := b.decide(ask("a", 1, 3), ask("a", 1, 3), ask("b", 1, 2), ask("c", 1, 1))
	b.outcomesAre(got, "granted", "repeat", "sold_out", "granted")
	for i, want := range map[int]string{0: "[y w z]", 1: "[y w z]", 3: "[]"} {
		if is := fmt.Sprint(got[i].Grant.Items); is != want {
			t.Errorf("claim %d got the items %s, want %s", i, is, want)
		}
	}
	g, ok, err := b.e.Find(t.Context(), got[0].Grant.Position)
	if err != nil || !ok || fmt.Sprint(g.Items) != "[y w z]" {
		t.Errorf("found %+v, %v, %v", g, ok, err)
	}
}

// TestBatchesOfAllSizes claims in batches that begin and end at every place of
// the index' fields, and finds every grant again.
func TestBatchesOfAllSizes(t *testing.T) {
	b := newBench(t, 10_000, nil)
	var grants []dibs.Grant
	for _, size := range []int{1, 2, 59, 1, 1, 63, 64, 65, 130, 1, format.MaxBatch} {
		var reqs []dibs.EngineClaim
		for range size {
			reqs = append(reqs, ask(fmt.Sprint("user-", len(grants)+len(reqs)), 1, 1))
		}
		for i, d := range b.decide(reqs...) {
			if d.Outcome != dibs.Granted || d.Grant.UserID != reqs[i].UserID || int(d.Grant.Seq) != len(grants)+2 {
				t.Fatalf("claim %d of a batch of %d is %+v", i, size, d)
			}
			grants = append(grants, d.Grant)
		}
	}
	for _, g := range grants {
		found, ok, err := b.e.Find(t.Context(), g.Position)
		if err != nil || !ok || fmt.Sprint(found) != fmt.Sprint(g) {
			t.Fatalf("Find(%v) is %+v, %v, %v, want %+v", g.Position, found, ok, err, g)
		}
	}
	entries, err := b.e.ReadJournal(t.Context(), b.shard, dibs.Cursor{Epoch: 1, Seq: 100}, 70)
	if err != nil || len(entries) != 70 || entries[0].Seq != 101 || entries[69].UserID != grants[168].UserID {
		t.Errorf("a page from the middle has %d entries, %v", len(entries), err)
	}
}

// TestNamesInsideOfRecords has a user whose name appears in the key of another
// one in the same bucket.
func TestNamesInsideOfRecords(t *testing.T) {
	b := newBench(t, 10, nil)
	neighbour := ""
	for i := 0; neighbour == ""; i++ {
		if name := fmt.Sprint("user-", i); format.BucketOf(name, minBuckets) == format.BucketOf("a", minBuckets) {
			neighbour = name
		}
	}
	// The bytes 1, 'a' are how a bucket would show the user "a".
	key := uint64(0x0161016101610161)
	b.outcomesAre(b.decide(ask(neighbour, key, 1), ask("a", key, 1), ask("a", 2, 1), ask(neighbour, 2, 1)),
		"granted", "granted", "limit_reached", "limit_reached")
	got := b.decide(ask(neighbour, key, 1), ask("a", key, 1))
	b.outcomesAre(got, "repeat", "repeat")
	if got[0].Grant.Seq != 2 || got[1].Grant.Seq != 3 {
		t.Errorf("the repeats are %+v and %+v", got[0].Grant, got[1].Grant)
	}
	if err := b.e.Release(t.Context(), dibs.Release{Claim: got[1].Grant.Position, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	b.outcomesAre(b.decide(ask(neighbour, 3, 1), ask("a", 3, 1)), "limit_reached", "granted")
}

// TestKeysAcrossRecords has a key whose bytes stand in a user's records, but
// not where a key does: it is another one.
func TestKeysAcrossRecords(t *testing.T) {
	b := newBench(t, 10, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 2 })
	const key = 0x0102030405060708
	b.outcomesAre(b.decide(ask("ann", key, 1)), "granted")
	// The record is the key, the mark of one unit in epoch 1, and seq 2.
	inside := uint64(0x0304050607081001)
	b.outcomesAre(b.decide(ask("ann", inside, 1), ask("ann", key, 1), ask("ann", 3, 1)), "granted", "repeat", "limit_reached")
	b.outcomesAre(b.decide(ask("ann", inside, 1), ask("ann", inside<<8, 1)), "repeat", "limit_reached")
}

// TestNumbersNearTheirBounds holds what Lua's doubles must not round.
func TestNumbersNearTheirBounds(t *testing.T) {
	const most = 1<<53 - 1
	b := newBench(t, most-2, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = math.MaxUint32; c.Stock.Total = 1 })
	left := func(want int64) {
		t.Helper()
		if s, err := b.e.Stats(t.Context(), b.shard); err != nil || s.Remaining != want {
			t.Errorf("%d are left, %v, want %d", s.Remaining, err, want)
		}
	}
	adjust := func(ref string, delta int64) error {
		return b.e.Adjust(t.Context(), dibs.Adjustment{Shard: b.shard, Epoch: 1, Ref: ref, Delta: delta})
	}
	left(most - 2)
	for _, delta := range []int64{3, 4, most, math.MaxInt64, math.MinInt64} {
		if err := adjust("much", delta); !errors.Is(err, dibs.ErrInvalidState) {
			t.Errorf("a change by %d is %v", delta, err)
		}
	}
	if err := adjust("fits", 2); err != nil {
		t.Error(err)
	}
	left(most)
	got := b.decide(ask("ann", math.MaxUint64, math.MaxUint32), ask("ann", 1, 1))
	b.outcomesAre(got, "granted", "limit_reached")
	left(most - math.MaxUint32)
	again := b.decide(ask("ann", math.MaxUint64, math.MaxUint32), ask("ann", math.MaxUint64-1, math.MaxUint32))
	b.outcomesAre(again, "repeat", "limit_reached")
	if again[0].Grant.Quantity != math.MaxUint32 {
		t.Errorf("the repeat is of %d", again[0].Grant.Quantity)
	}
	if err := b.e.Release(t.Context(), dibs.Release{Claim: got[0].Grant.Position, Epoch: 1}); err != nil {
		t.Error(err)
	}
	left(most)
	entries, err := b.e.ReadJournal(t.Context(), b.shard, dibs.Cursor{}, 10)
	if err != nil || len(entries) != 4 || entries[1].Quantity != 2 || entries[2].Key != math.MaxUint64 || entries[3].Quantity != math.MaxUint32 {
		t.Errorf("the journal has %+v, %v", entries, err)
	}
	too := &dibs.ShardLoad{Epoch: 2, Position: entries[3].Cursor, StockLeft: most + 1}
	c := &dibs.Campaign{Number: 7, Shards: 1, Version: 1, LimitPerUser: 1, State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units}}
	if err := b.e.Open(t.Context(), c, b.shard, too); !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("a load beyond what can be counted is %v", err)
	}
	for _, quantity := range []int64{0, -1, math.MaxUint32 + 1} {
		if _, err := b.e.Claim(t.Context(), dibs.EngineClaim{Shard: b.shard, UserID: "ann", Quantity: quantity}); !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("a claim of %d is %v", quantity, err)
		}
	}
}

// TestPlacesOfAnEpochEnd reaches the last place that there is.
func TestPlacesOfAnEpochEnd(t *testing.T) {
	b := newBench(t, 10, nil)
	if _, err := b.e.p.redis.Call(t.Context(), "HSET", b.l.keys.Meta, "seq", format.Itoa(int64(math.MaxUint32-1))); err != nil {
		t.Fatal(err)
	}
	d, err := b.e.Claim(t.Context(), shardAsk(b.shard, "ann"))
	if err != nil || d.Grant.Seq != math.MaxUint32 {
		t.Errorf("the last place is %+v, %v", d, err)
	}
	var refused *dibs.Error
	if _, err := b.e.Claim(t.Context(), shardAsk(b.shard, "bob")); !errors.As(err, &refused) || refused.Effect != dibs.EffectNone {
		t.Errorf("beyond the last place a claim is %v", err)
	}
	if err := b.e.Release(t.Context(), dibs.Release{Claim: d.Grant.Position, Epoch: 1}); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("beyond the last place a release is %v", err)
	}
	if d, err := b.e.Claim(t.Context(), shardAsk(b.shard, "ann")); err != nil || !d.Replayed {
		t.Errorf("the repeat is %+v, %v", d, err)
	}
}

func shardAsk(shard dibs.ShardID, user string) dibs.EngineClaim {
	return dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1}
}
