package redisengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// decides runs the claim script with a batch's own deadline.
func (b *bench) decides(batch *batch) conn.Result {
	b.Helper()
	k := &b.l.keys
	args := append([]string{format.Itoa(batch.deadlineMS), batch.token, format.Itoa(b.l.buckets)}, batch.encode(b.l.buckets)...)
	args = append(args, format.Itoa(max(b.l.shards, 0)))
	res, err := b.l.run(b.Context(), conn.ClaimScript, []string{k.Meta, k.Holdings, k.Places, k.Journal, k.Free, k.Issued, k.State}, args...)
	if err != nil {
		b.Fatal(err)
	}
	return res
}

// sent makes a batch of one claim as send does, with a deadline so far from now.
func (b *bench) sent(user string, fromNow time.Duration) *batch {
	b.Helper()
	now, _, err := b.l.standing(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	req := ask(user, 1, 1)
	req.Shard = b.shard
	return &batch{
		lane: b.l, token: b.e.p.token(), after: b.l.seen, deadlineMS: now + fromNow.Milliseconds(),
		waiters: []*waiter{takenWaiter(b.Context(), &req)},
	}
}

// The answer of a batch is lost that had a repeat and a new claim of one user:
// each finds its own grant, also when they are alike but for their keys.
func TestALostAnswerOfARepeatAndANewClaim(t *testing.T) {
	b := newBench(t, 10, func(c *dibs.Campaign, _ *dibs.ShardLoad) { c.LimitPerUser = 5 })
	first := b.decide(ask("ann", 1, 1))
	lost := b.sent("ann", time.Second)
	for _, req := range []dibs.EngineClaim{ask("ann", 2, 1), ask("ann", 0, 1), ask("ann", 3, 2), ask("ann", 2, 1), ask("bob", 2, 1)} {
		req.Shard = b.shard
		lost.waiters = append(lost.waiters, takenWaiter(t.Context(), &req))
	}
	b.decides(lost)
	granted, err := lost.search(t.Context())
	if err != nil || granted == nil || len(granted.Entries) != 4 {
		t.Fatalf("the batch is found as %+v, %v", granted, err)
	}
	waiters := append([]*waiter(nil), lost.waiters...)
	lost.settle(granted, conn.ErrShape)
	// A claim that is decided again goes with the next one.
	b.claim(ask("cid", 1, 1))
	for i, want := range []struct {
		seq      uint32
		replayed bool
	}{{first[0].Grant.Seq, true}, {3, false}, {4, false}, {5, false}, {3, true}, {6, false}} {
		select {
		case <-waiters[i].done:
		case <-time.After(10 * time.Second):
			t.Fatalf("claim %d is not answered", i)
		}
		d, err := waiters[i].decision()
		if err != nil || d.Outcome != dibs.Granted || d.Grant.Seq != want.seq || d.Replayed != want.replayed {
			t.Errorf("claim %d is %+v, %v, want seq %d, replayed: %v", i, d, err, want.seq, want.replayed)
		}
	}
}

// After a batch's deadline it is not decided, and only then is it a final no
// that nothing is found.
func TestDeadlineMakesNothingFoundFinal(t *testing.T) {
	b := newBench(t, 10, nil)
	late := b.sent("ann", -time.Millisecond)
	if got := b.decides(late); got.Word != "late" {
		t.Errorf("after its deadline a batch is %s", got.Word)
	}
	if found, err := late.search(t.Context()); found != nil || err != nil {
		t.Errorf("after its deadline the search says %+v, %v", found, err)
	}
	early := b.sent("ann", time.Hour)
	if found, err := early.search(t.Context()); found != nil || !errors.Is(err, errStillOpen) {
		t.Errorf("before its deadline the search says %+v, %v", found, err)
	}
	if got := b.decides(early); got.Word != "ok" {
		t.Errorf("before its deadline a batch is %s", got.Word)
	}
	found, err := early.search(t.Context())
	if err != nil || found == nil || len(found.Entries) != 1 || found.Entries[0].Seq != 2 {
		t.Errorf("what was decided is found as %+v, %v", found, err)
	}
}

// Where the journal was trimmed, or begins an epoch that does not follow, not
// finding a batch says nothing.
func TestSearchKnowsItsBounds(t *testing.T) {
	b := newBench(t, 10, nil)
	gone := b.sent("ann", time.Second)
	b.decides(gone)
	stats, err := b.e.Stats(t.Context(), b.shard)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.e.TrimJournal(t.Context(), b.shard, stats.Head, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	gone.deadlineMS = 0
	if found, err := gone.search(t.Context()); found != nil || !errors.Is(err, errUnsure) {
		t.Errorf("with the entry trimmed the search says %+v, %v", found, err)
	}
	ahead := b.sent("bob", -time.Second)
	ahead.after = dibs.Cursor{Epoch: 1, Seq: 9}
	if found, err := ahead.search(t.Context()); found != nil || !errors.Is(err, errUnsure) {
		t.Errorf("with a journal that ends before the batch the search says %+v, %v", found, err)
	}
}

// A node whose idea of Redis' clock is wrong learns the right one from the
// refusal and has the claims decided.
func TestWrongClockIsCorrected(t *testing.T) {
	b := newBench(t, 10, nil)
	b.decide(ask("ann", 1, 1))
	b.l.known.Lock()
	b.l.ahead -= time.Hour.Milliseconds()
	b.l.known.Unlock()
	d, err := b.e.Claim(t.Context(), shardAsk(b.shard, "bob"))
	if err != nil || d.Grant.Seq != 3 || d.Replayed {
		t.Errorf("with a wrong clock a claim is %+v, %v", d, err)
	}
}

// set writes fields of the shard's meta hash.
func (b *bench) set(fields ...string) {
	b.Helper()
	if _, err := b.e.p.redis.Call(b.Context(), "HSET", b.l.keys.Meta, fields...); err != nil {
		b.Fatal(err)
	}
}

// A batch that was under way when the server changed is granted when the new
// one's journal has it. When it has not, it is unsure until the shard was
// opened again, and for good when the ledger had settled more than is there.
func TestSearchAcrossAChangeOfTheServer(t *testing.T) {
	b := newBench(t, 10, nil)
	there := b.sent("ann", time.Second)
	b.decides(there)
	gone := b.sent("bob", -time.Second)
	b.set("server", "another")
	if found, err := there.search(t.Context()); err != nil || found == nil || found.Entries[0].UserID != "ann" {
		t.Errorf("what the new server has is found as %+v, %v", found, err)
	}
	if found, err := gone.search(t.Context()); found != nil || !errors.Is(err, errFenced) {
		t.Errorf("before the shard is open again the search says %+v, %v", found, err)
	}
	c := openCampaign(10)
	if err := b.e.Open(t.Context(), c, b.shard, &dibs.ShardLoad{Epoch: 2, StockLeft: 10}); err != nil {
		t.Fatal(err)
	}
	if found, err := gone.search(t.Context()); found != nil || err != nil {
		t.Errorf("with the whole history open again the search says %+v, %v", found, err)
	}
	ahead := &dibs.ShardLoad{Epoch: 3, Position: dibs.Cursor{Epoch: 2, Seq: 9}, StockLeft: 2}
	gone.after = dibs.Cursor{Epoch: 2, Seq: 1}
	if err := b.e.Open(t.Context(), c, b.shard, ahead); err != nil {
		t.Fatal(err)
	}
	if found, err := gone.search(t.Context()); found != nil || !errors.Is(err, errUnsure) {
		t.Errorf("where the ledger had more than the server the search says %+v, %v", found, err)
	}
}

// A shard that is opened anew while the journal is searched, on a server that
// may not be the one that was searched, says nothing final.
func TestSearchKnowsItsServer(t *testing.T) {
	b := newBench(t, 10, nil)
	gone := b.sent("bob", -time.Second)
	b.e.p.redis = &meanwhile{Server: b.e.p.redis, do: func() { b.set("epoch", "2") }}
	if found, err := gone.search(t.Context()); found != nil || !errors.Is(err, errFenced) {
		t.Errorf("with another epoch at its end the search says %+v, %v", found, err)
	}
}

// meanwhile does something once, before the journal is read.
type meanwhile struct {
	conn.Server
	do func()
}

func (m *meanwhile) Call(ctx context.Context, command, key string, args ...string) (conn.Reply, error) {
	if do := m.do; command == "XRANGE" && do != nil {
		m.do = nil
		do()
	}
	return m.Server.Call(ctx, command, key, args...)
}
