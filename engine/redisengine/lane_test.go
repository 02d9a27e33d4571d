package redisengine

import (
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs"
)

// Claims that gather while calls are under way are counted, and those in the calls,
// until they are decided.
func TestWaitingClaimsAreCounted(t *testing.T) {
	b := newBench(t, 10, nil)
	waits := func(when string, want int64) {
		t.Helper()
		if st, err := b.e.Stats(t.Context(), b.shard); err != nil || st.Waiting != want || st.Queued != 0 {
			t.Errorf("%s %d wait, and %d for their commit, %v; want %d", when, st.Waiting, st.Queued, err, want)
		}
	}
	waits("at first", 0)
	// As if all calls that may be under way were.
	b.l.mu.Lock()
	b.l.flying = maxFlying
	b.l.mu.Unlock()
	var sent []*waiter
	for i := range 3 {
		req := shardAsk(b.shard, fmt.Sprint("user-", i))
		tick := newWaiter(t.Context(), &req)
		if err := b.l.enqueue(tick); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, tick)
	}
	waits("behind the calls", 3)
	call := &batch{lane: b.l}
	if !b.l.take(call) {
		t.Error("nothing is taken")
	}
	waits("in a call", 3)
	call.retry(call.waiters, nil)
	waits("back behind the calls", 3)
	for range maxFlying {
		go b.l.fly(&batch{lane: b.l})
	}
	for _, tick := range sent {
		<-tick.done
		if d, err := tick.decision(); err != nil || d.Outcome != dibs.Granted {
			t.Errorf("decided %+v, %v", d, err)
		}
	}
	waits("in the end", 0)
}
