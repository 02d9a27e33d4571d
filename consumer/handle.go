package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// reading is an entry of a stream.
type reading struct {
	id      string
	subject string
	// event is the event as it came.
	event    string
	delivery Delivery
	decision Decision
	// fault says why the entry is no event.
	fault string
	// untried says that the handler was not called, or could not finish because
	// the consumer stops: that is no attempt.
	untried bool
	// done says that nothing is left to do but to tell the broker.
	done bool
}

// read is an entry with its event.
func read(id, subject, event string, attempt int) *reading {
	e := &reading{id: id, subject: subject, event: event, delivery: Delivery{Attempt: attempt}}
	if err := json.Unmarshal([]byte(event), &e.delivery.Event); err != nil {
		e.fault, e.done = "it is no event: "+err.Error(), true
	}
	return e
}

// kept is how long the broker keeps entries for the consumer that works on
// them, in timeouts of a handler. It is told again each timeout.
const kept = 4

// batch is what one consumer works on.
//
// mu guards keptAt, and decision, untried and done of every entry while handle runs. It is
// held for no call of the handler or the broker. entries itself does not change.
type batch struct {
	cfg     *Config
	entries []*reading
	// keep tells the broker that entries are being worked on for kept timeouts
	// more.
	keep func(ctx context.Context, entries []*reading) error

	mu sync.Mutex
	// keptAt is when the broker was told so.
	keptAt time.Time
}

// handle calls the handler for entries that the broker keeps since keptAt:
// subjects beside one another, those of one subject in order. It reports whether
// the broker has kept them all the time, as far as can be told: otherwise another
// consumer may have them now.
func (b *batch) handle(ctx context.Context) (ours bool) {
	bySubject := make(map[string][]*reading)
	var subjects []string
	for _, e := range b.entries {
		if e.done {
			continue
		}
		if len(bySubject[e.subject]) == 0 {
			subjects = append(subjects, e.subject)
		}
		bySubject[e.subject] = append(bySubject[e.subject], e)
	}
	over := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() { b.keepOn(ctx, over) })
	var all sync.WaitGroup
	free := make(chan struct{}, b.cfg.Workers)
	for _, subject := range subjects {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			for _, e := range bySubject[subject] {
				b.handleOne(ctx, e)
			}
		})
	}
	all.Wait()
	close(over)
	keeping.Wait()
	return b.holds(kept)
}

// holds reports whether the broker was told within some timeouts.
func (b *batch) holds(timeouts int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.keptAt)/b.cfg.Timeout < time.Duration(timeouts)
}

// keepOn tells the broker each timeout what is being worked on. A consumer that
// was late, its process frozen say, does not: others may have the entries.
func (b *batch) keepOn(ctx context.Context, over <-chan struct{}) {
	tick := time.NewTicker(b.cfg.Timeout)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		b.mu.Lock()
		var left []*reading
		for _, e := range b.entries {
			if !e.done {
				left = append(left, e)
			}
		}
		b.mu.Unlock()
		if len(left) == 0 || !b.holds(kept-1) {
			continue
		}
		asked := time.Now()
		// Those that are being handled are kept even when the consumer stops.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Timeout)
		err := b.keep(within, left)
		cancel()
		if err != nil {
			b.cfg.Logger.Warn("the broker does not keep events that are being handled", "err", err)
			continue
		}
		b.mu.Lock()
		b.keptAt = asked
		b.mu.Unlock()
	}
}

// handleOne calls the handler; one that panics has not handled the event.
func (b *batch) handleOne(ctx context.Context, e *reading) {
	decision, untried := Decision{later: true}, true
	// The handler has a timeout before the broker gives the event to another.
	if ctx.Err() == nil && b.holds(kept-1) {
		decision = b.cfg.call(ctx, &e.delivery)
		untried = decision.later && ctx.Err() != nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e.decision, e.untried, e.done = decision, untried, !untried
}

func (c *Config) call(ctx context.Context, d *Delivery) (decision Decision) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if fault := recover(); fault != nil {
			decision = ReconsumeLater(time.Minute, fmt.Errorf("panic: %v", fault))
			c.Logger.Error("a handler panicked", "event", d.Event.ID, "panic", fault)
		}
	}()
	return c.Handle(ctx, d)
}

// buried reports whether an entry becomes a dead letter, and why.
func (c *Config) buried(e *reading) (why string, yes bool) {
	if e.fault != "" {
		return e.fault, true
	}
	return e.decision.why, e.decision.later && !e.untried && e.delivery.Attempt >= c.MaxAttempts
}
