package redisengine

import (
	"context"
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
)

// A caller that waits no longer hears so, and what became of his claim: nothing
// while it was in no call yet. What a call decides for those who have left stands.
func TestCallersLeave(t *testing.T) {
	b := newBench(t, 10, nil)
	// As if all calls that may be under way were.
	b.l.mu.Lock()
	b.l.flying = maxFlying
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
	if !b.l.take(call) || len(call.tickets) != 2 {
		t.Fatalf("%d claims are in the call, want those of bob and cid", len(call.tickets))
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
	b.l.flying = 0
	b.l.mu.Unlock()
}
