package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Delivery is an event on its way to a handler.
type Delivery struct {
	Event events.Event
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

// How long one read waits for entries, and how often those are looked for that
// are due again.
const (
	readWait = 500 * time.Millisecond
	redoRest = time.Second
)

// maxDelay is the longest delay. It is also how long Redis keeps an entry for a
// consumer that died before it said how long it needs.
const maxDelay = time.Hour

// Handler handles one event. Several run at the same time, in one process never
// two for one subject. When its context ends, it should return.
type Handler func(ctx context.Context, d *Delivery) Decision

// Config configures a consumer. URL, Group and Handle are required; the zero
// value of any other field means the default named beside it.
type Config struct {
	// URL is the address that dibs publishes to, as --events has it:
	// redis://USER:PASSWORD@HOST:6379/0?stream=NAME, nats://HOST:4222/PREFIX?stream=NAME.
	URL string
	// Stream is the stream's name; default what the address says, and else
	// dibs:events in Redis and DIBS in NATS.
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
	c.MaxAttempts = cmp.Or(max(c.MaxAttempts, 0), 16)
	c.Timeout = cmp.Or(max(c.Timeout, 0), 30*time.Second)
	c.Batch = cmp.Or(max(c.Batch, 0), 64)
	c.Workers = cmp.Or(max(c.Workers, 0), 8)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Name = cmp.Or(c.Name, fmt.Sprintf("consumer-%d", time.Now().UnixNano()))
	if c.Group == "" || c.Handle == nil {
		return c, errors.New("consumer: Config.Group and Config.Handle are required")
	}
	return c, nil
}

// Run handles events until ctx ends, whose error it then returns. Errors of the
// broker are logged, and tried again with growing pauses.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	at, err := placeOf(cfg.URL, cfg.Stream, cfg.Group)
	if err != nil {
		return err
	}
	cfg.Stream = at.stream
	pause := redoRest / 4
	for ctx.Err() == nil {
		worked, err := at.kind.run(ctx, &cfg, at)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("events wait: the broker does not give them", "stream", cfg.Stream, "err", err)
		}
		if pause = min(2*pause, 15*time.Second); worked {
			pause = redoRest / 4
		}
		wait.Sleep(ctx, pause)
	}
	return ctx.Err()
}
