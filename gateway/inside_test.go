package gateway

import (
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/tokens"
)

// A claim that is no longer under way has its answer queued: a writer that ends
// the connection looks for both under the lock, and would drop the answer.
func TestAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	h := &Hub{cfg: Config{MaxQueued: 1}}
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for i := range 20 {
		m := &claimMessage{ID: "tap", CampaignID: "c"}
		// Its writer is this test.
		c := &conn{hub: h, inFlight: []tap{m.tap()}, writing: true}
		var both sync.WaitGroup
		// A goroutine that has waited for a mutex for long is given it by the one before: the
		// writer is next after every unlocking of the claim.
		c.mu.Lock()
		both.Go(func() { c.finish(m, []byte("yes")) })
		<-tick.C
		both.Go(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.inFlight) == 0 && len(c.queue) == 0 {
				t.Errorf("connection %d: neither a claim under way nor its answer", i)
			}
		})
		<-tick.C
		c.mu.Unlock()
		c.mu.Lock()
		<-tick.C
		c.mu.Unlock()
		both.Wait()
	}
}

// A token that is taken in the moment in which its connection is dropped leaves
// nothing behind: the user would seem to be there for ever.
func TestForgottenWhileJoining(t *testing.T) {
	t.Parallel()
	h := &Hub{cfg: Config{MaxPerUser: 8}, conns: map[*conn]struct{}{}, users: map[string][]*conn{}}
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for range 20 {
		c := &conn{hub: h}
		h.conns[c] = struct{}{}
		h.count++
		h.running.Add(1)
		// It is being forgotten, and waits; the other goroutine is a step ahead.
		h.mu.Lock()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.forget(c)
		}()
		<-tick.C
		c.setUser(tokens.Token{User: "ann"})
		h.users["ann"] = append(h.users["ann"], c)
		h.mu.Unlock()
		<-done
		if len(h.users) > 0 {
			t.Fatal("a connection that is gone is still the user's")
		}
	}
}
