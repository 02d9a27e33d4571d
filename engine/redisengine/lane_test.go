package redisengine

import (
	"fmt"
	"testing"
	"time"

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
	b.l.inFlight = maxInFlight
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
	for range maxInFlight {
		go b.l.send(&batch{lane: b.l})
	}
	for _, tick := range sent {
		<-tick.done
		if d, err := tick.decision(); err != nil || d.Outcome != dibs.Granted {
			t.Errorf("decided %+v, %v", d, err)
		}
	}
	waits("in the end", 0)
}

// A shard has a second call under way only while the server has not two already, of
// whatever shards: more calls have fewer claims each.
func TestSecondCalls(t *testing.T) {
	b := newBench(t, 10, nil)
	var sent []*waiter
	enqueue := func() {
		t.Helper()
		req := shardAsk(b.shard, fmt.Sprint("user-", len(sent)))
		tick := newWaiter(t.Context(), &req)
		if err := b.l.enqueue(tick); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, tick)
	}
	expect := func(when string, calls int, queued int) {
		t.Helper()
		b.l.mu.Lock()
		defer b.l.mu.Unlock()
		if b.l.inFlight != calls || len(b.l.queue) != queued {
			t.Errorf("%s %d calls are under way, and %d claims wait", when, b.l.inFlight, len(b.l.queue))
		}
	}
	// As if the shard had one call under way, and another shard one more, and nothing had
	// waited for long, however slow this machine is.
	b.l.inFlight, b.l.dropping = 1, true
	b.l.p.inFlight.Store(maxInFlight)
	enqueue()
	expect("with two calls to the server", 1, 1)
	// As if the shard had two by then.
	b.l.inFlight, b.l.since = 2, time.Now().Add(time.Hour)
	b.l.p.inFlight.Store(maxInFlight + 1)
	if b.l.take(&batch{lane: b.l}) {
		t.Error("the second call of the shard goes on")
	}
	expect("after the second call", 1, 1)
	if n := b.l.p.inFlight.Load(); n != maxInFlight {
		t.Errorf("the server has %d calls", n)
	}
	// The last one of the shard goes on whatever the others do.
	b.l.p.inFlight.Store(10)
	call := &batch{lane: b.l}
	if !b.l.take(call) {
		t.Error("the only call of the shard is over")
	}
	call.retry(call.waiters, nil)
	b.l.p.inFlight.Store(1)
	enqueue()
	for _, tick := range sent {
		<-tick.done
		if d, err := tick.decision(); err != nil || d.Outcome != dibs.Granted {
			t.Errorf("decided %+v, %v", d, err)
		}
	}
	// End the call that this test only pretends to make.
	b.l.mu.Lock()
	b.l.inFlight--
	b.l.mu.Unlock()
}

// A claim does not wait for a call that hangs, whatever other shards have under way.
func TestAHungCallHoldsNobodyUp(t *testing.T) {
	b := newBench(t, 10, nil)
	// As if the shard's only call hung, and another shard had one that goes on and on.
	b.l.inFlight = 1
	b.l.p.inFlight.Store(maxInFlight)
	req := shardAsk(b.shard, "u")
	tick := newWaiter(t.Context(), &req)
	if err := b.l.enqueue(tick); err != nil {
		t.Fatal(err)
	}
	<-tick.done
	if d, err := tick.decision(); err != nil || d.Outcome != dibs.Granted {
		t.Errorf("decided %+v, %v", d, err)
	}
	b.l.mu.Lock()
	b.l.inFlight--
	b.l.mu.Unlock()
}
