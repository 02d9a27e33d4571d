package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Delivery is an event on its way to a handler.
type Delivery struct {
	Event dibs.Event
	// Attempt counts from 1.
	Attempt int
}

// Decision is what a handler returns: Commit, or ReconsumeLater.
type Decision struct {
	later bool
	delay time.Duration
	why   string
}

// Commit says that the event was handled.
var Commit = Decision{}

// ReconsumeLater asks for the event again after a delay, up to an hour. why is
// shown when it becomes a dead letter.
func ReconsumeLater(delay time.Duration, why error) Decision {
	d := Decision{later: true, delay: min(max(delay, 0), maxDelay)}
	if why != nil {
		d.why = why.Error()
	}
	return d
}

// maxDelay is the longest delay. It is also how long Redis keeps an entry for a
// consumer that died before it said how long it needs.
const maxDelay = time.Hour

// Handler handles one event. Several run at the same time, never two for one
// subject. When its context ends, it should return.
type Handler func(ctx context.Context, d *Delivery) Decision

// Config configures a consumer. URL, Group and Handle are required; the zero
// value of any other field means the default named beside it.
type Config struct {
	// URL is the address of Redis, redis://USER:PASSWORD@HOST:6379/0.
	URL string
	// Stream is the stream's name; default dibs:events.
	Stream string
	// Group is the group's name: each group gets every event.
	Group string
	// Name is the consumer's own within the group; default made up.
	Name string
	// FromStart lets a group that is new begin with what the stream has already,
	// and not with what comes next.
	FromStart bool
	Handle    Handler
	// MaxAttempts is how often an event is handled before it becomes a dead
	// letter; default 16.
	MaxAttempts int
	// Timeout bounds one call of the handler; default 30s. The events of a
	// consumer that died come back after four times as long.
	Timeout time.Duration
	// Batch is how many events are read at a time, Workers how many are handled
	// at a time; default 64 and 8.
	Batch, Workers int
	// Logger receives what operators should know; default: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Stream == "" {
		c.Stream = DefaultStream
	}
	if c.MaxAttempts <= 0 {
		c.MaxAttempts = 16
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Batch <= 0 {
		c.Batch = 64
	}
	if c.Workers <= 0 {
		c.Workers = 8
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Name == "" {
		c.Name = fmt.Sprintf("consumer-%d", time.Now().UnixNano())
	}
	if c.Group == "" || c.Handle == nil {
		return c, errors.New("consumer: Config.Group and Config.Handle are required")
	}
	return c, nil
}

// reading is an entry of a stream.
type reading struct {
	id       string
	fields   map[string]string
	delivery Delivery
	decision Decision
}

// handle calls the handler for entries: subjects beside one another, those of
// one subject in order.
func (c *Config) handle(ctx context.Context, entries []*reading) {
	bySubject := make(map[string][]*reading)
	var subjects []string
	for _, e := range entries {
		subject := e.fields["subject"]
		if len(bySubject[subject]) == 0 {
			subjects = append(subjects, subject)
		}
		bySubject[subject] = append(bySubject[subject], e)
	}
	var all sync.WaitGroup
	free := make(chan struct{}, c.Workers)
	for _, subject := range subjects {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			for _, e := range bySubject[subject] {
				c.handleOne(ctx, e)
			}
		})
	}
	all.Wait()
}

// handleOne calls the handler; one that panics has not handled the event.
func (c *Config) handleOne(ctx context.Context, e *reading) {
	if ctx.Err() != nil {
		e.decision = ReconsumeLater(0, ctx.Err())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if fault := recover(); fault != nil {
			e.decision = ReconsumeLater(time.Minute, fmt.Errorf("panic: %v", fault))
			c.Logger.Error("a handler panicked", "event", e.delivery.Event.ID, "panic", fault)
		}
	}()
	e.decision = c.Handle(ctx, &e.delivery)
}
