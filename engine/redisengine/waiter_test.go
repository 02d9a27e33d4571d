package redisengine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// A caller that stops waiting is told so, and what became of the claim: nothing
// while it was in no call yet. A call's decisions for callers that have left stand.
func TestCallersLeave(t *testing.T) {
	b := newBench(t, 10, nil)
	// As if all calls that may be under way were.
	b.l.mu.Lock()
	b.l.inFlight = maxInFlight
	b.l.mu.Unlock()
	claim := func(user string) (leave context.CancelFunc, answer chan error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		answer = make(chan error, 1)
		before := b.l.waiting()
		go func() {
			_, err := b.e.Claim(ctx, shardAsk(b.shard, user))
			answer <- err
		}()
		for b.l.waiting() == before && t.Context().Err() == nil {
		}
		return cancel, answer
	}
	leavesWith := func(what string, answer chan error, want dibs.Effect) {
		t.Helper()
		var e *dibs.Error
		if err := <-answer; !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Effect != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	leave, answer := claim("ann")
	leave()
	leavesWith("a claim that waits", answer, dibs.EffectNone)

	leave, answer = claim("bob")
	_, stays := claim("cid")
	call := &batch{lane: b.l}
	b.l.mu.Lock()
	b.l.calls = append(b.l.calls, call)
	b.l.mu.Unlock()
	if !b.l.take(call) || len(call.waiters) != 2 {
		t.Fatalf("%d claims are in the call, want those of bob and cid", len(call.waiters))
	}
	leave()
	leavesWith("a claim in a call", answer, dibs.EffectUnknown)
	call.send()
	if err := <-stays; err != nil {
		t.Errorf("who stays hears %v", err)
	}
	if st, err := b.e.Stats(t.Context(), b.shard); err != nil || st.Granted != 2 {
		t.Errorf("%d are granted, %v; want what the call decided", st.Granted, err)
	}
	if b.l.take(call) {
		t.Error("something waits still")
	}
	b.l.mu.Lock()
	b.l.inFlight = 0
	b.l.mu.Unlock()
}

// A caller may stop waiting at any time, also while the items of the claim are not known.
func TestCallersLeaveWhileItemsAreAskedFor(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	b := newBenchOn(t, r, 10, nil)
	b.l.mu.Lock()
	b.l.inFlight = maxInFlight
	b.l.mu.Unlock()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req := shardAsk(b.shard, "ann")
	ann := newWaiter(ctx, &req)
	if err := b.l.enqueue(ann); err != nil {
		t.Fatal(err)
	}
	call := &batch{lane: b.l}
	b.l.mu.Lock()
	b.l.calls = append(b.l.calls, call)
	b.l.mu.Unlock()
	if !b.l.take(call) {
		t.Fatal("nothing is taken")
	}
	r.Kill()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		at := dibs.Cursor{Epoch: 1, Seq: 2}
		call.settle(&format.Element{Last: at, Entries: []dibs.Entry{{
			Cursor: at, UserID: "ann", Key: req.Key, Quantity: req.Quantity, At: time.Now().UnixMilli(), Items: []uint32{1},
		}}}, errStillOpen)
	}()
	leave()
	<-ann.done
	var e *dibs.Error
	if !errors.Is(ann.err, context.Canceled) || !errors.As(ann.err, &e) || e.Effect != dibs.EffectUnknown {
		t.Errorf("who leaves hears %v", ann.err)
	}
	<-settled
	b.l.mu.Lock()
	b.l.inFlight, b.l.calls = 0, nil
	b.l.mu.Unlock()
}
