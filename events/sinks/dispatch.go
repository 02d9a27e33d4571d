package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Half of the default lease is publishPatience, so an attempt ends before another
// node may take the sink.
const (
	// publishMost is about how many events are published at a time, and
	// publishPatience bounds the wait for the sink to acknowledge them.
	publishMost     = 2048
	publishPatience = 10 * time.Second
	// pauseMin and pauseMax bound the pause after a failure.
	pauseMin = 200 * time.Millisecond
	pauseMax = 15 * time.Second
)

// Feed is where events are read from, as *events.Events has them, and the ledger, where
// it is kept how far each sink is. TakeNews fails with events.ErrSinkTaken when another
// node has taken the sink, or its place has moved: then nothing was changed.
type Feed interface {
	After(ctx context.Context, after int64, max int) (batch []events.Event, last int64, err error)
	events.SinkLedger
}

// Config configures the dispatchers of a node. Feed and Endpoints are required; the
// zero value of any other field means the default named beside it.
type Config struct {
	Feed      Feed
	Endpoints Endpoints
	// Sinks are addresses that Check has nothing against.
	Sinks []string
	// Login returns the user and the password of a sink's address at each new connection;
	// nil, also as an answer, for those in the address.
	Login func(address string) *url.Userinfo
	// Webhooks configures the posting to endpoints.
	Webhooks WebhookConfig
	// Poll is how often the feed is asked for news; default 200ms.
	Poll time.Duration
	// Lease is how long a node keeps a sink without a word: after a crash another
	// one waits for so long; default 20s. Half of it bounds one attempt to publish.
	Lease time.Duration
	// Alone says that no other process uses the ledger: then leases that others
	// have are those of the dead, and are not waited for.
	Alone bool
	// Owner names this process in leases; default made of host and process.
	Owner string
	// Logger receives what operators should know; default: nothing is logged.
	Logger *slog.Logger
}

// Dispatchers carry events to the sinks of one node until Close.
type Dispatchers struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// dispatcher carries events to one sink.
//
// One goroutine runs it. heldFor is read by the posting of webhooks as well. At most
// one node carries a sink's events as long as clocks run at about the same speed;
// when two do, the move of the place by compare-and-set lets one of them win, and
// events are published twice.
type dispatcher struct {
	src  Feed
	name string
	// address is where the sink is, to say at once when nothing takes a connection there;
	// empty for webhooks, of which there are many.
	address string
	owner   string
	poll    time.Duration
	lease   time.Duration
	alone   bool
	log     *slog.Logger
	// hand passes events on. It moves the place itself when it returns true.
	hand func(ctx context.Context, batch []events.Event, t *events.Taking) (moved bool, err error)
	stop func() error
	// wanted reports whether there is anybody to carry events to; nil for always.
	wanted func(ctx context.Context) (bool, error)
	// begun is when the dispatcher was made, and heldFor how long after that this
	// node has the sink. Clocks that are set do not matter.
	begun   time.Time
	heldFor atomic.Int64
}

// made counts the owners that this process has made up.
var made atomic.Int64

func (cfg Config) withDefaults() Config {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Poll = positive(cfg.Poll, 200*time.Millisecond)
	cfg.Lease = positive(cfg.Lease, 2*publishPatience)
	if cfg.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "a host"
		}
		cfg.Owner = fmt.Sprintf("%s:%d:%d:%d", host, os.Getpid(), made.Add(1), time.Now().UnixNano())
	}
	return cfg
}

// Start begins to carry events: a new sink has all that happens after it returned.
// Addresses that cannot be used are an error, and a ledger that does not answer;
// sinks that cannot be reached are not.
func Start(cfg Config) (*Dispatchers, error) {
	cfg = cfg.withDefaults()
	var list []*dispatcher
	for _, address := range cfg.Sinks {
		p, err := open(address, cfg.Login)
		if err != nil {
			return nil, err
		}
		list = append(list, &dispatcher{
			src: cfg.Feed, name: Name(address), address: address, owner: cfg.Owner, poll: cfg.Poll, lease: cfg.Lease, alone: cfg.Alone,
			log: cfg.Logger, hand: publish(p, cfg.Lease/2), stop: p.Close, begun: time.Now(),
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, one := range list {
		if err := one.begin(ctx); err != nil {
			cancel()
			return nil, err
		}
	}
	d := &Dispatchers{cancel: cancel}
	for _, one := range list {
		d.loops.Go(func() {
			one.run(ctx)
			one.leave()
		})
	}
	w := newWebhooks(&cfg)
	d.loops.Go(func() { w.run(ctx) })
	return d, nil
}

// Close ends the work; what is not published yet is by another node, or after
// the next start.
// It returns when nothing is on its way, at the latest after an attempt's patience.
func (d *Dispatchers) Close() {
	d.cancel()
	d.loops.Wait()
}

// publish hands events to a publisher.
// A batch counts as a whole: after an error all of it is published again.
func publish(p Publisher, patience time.Duration) func(context.Context, []events.Event, *events.Taking) (bool, error) {
	return func(ctx context.Context, batch []events.Event, _ *events.Taking) (bool, error) {
		messages := make([]Message, len(batch))
		for i := range batch {
			e := &batch[i]
			body, err := e.Encode()
			if err != nil {
				return false, err
			}
			messages[i] = Message{ID: e.ID, Type: e.Type, Subject: e.Subject, Body: body}
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return false, p.Publish(ctx, messages)
	}
}

// run carries events until ctx ends.
// No error ends it: a sink that is down is tried for ever.
func (d *dispatcher) run(ctx context.Context) {
	pause := pauseMin
	troubles := trouble.New(d.log, slog.LevelWarn)
	if d.address != "" {
		if err := reachable(ctx, d.address); err != nil && ctx.Err() == nil {
			troubles.Is(d.name, "a sink cannot be reached: events wait for it", err, "sink", d.name)
		}
	}
	// A turn goes on for as long as all is well: what it carries says that the trouble is over, not its end.
	again := func() { troubles.Over(d.name, "a sink takes events again", "sink", d.name) }
	for ctx.Err() == nil {
		worked, err := d.turn(ctx, again)
		switch {
		case worked:
			pause = pauseMin
		case err != nil:
			pause = min(2*pause, pauseMax)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, events.ErrSinkTaken) {
			troubles.Is(d.name, "events wait: a sink cannot take them", err, "sink", d.name)
		}
		wait.Sleep(ctx, pause)
	}
}

// begin makes a new sink known to the ledger, from where on it has the feed. The sink's
// broker may not be there yet.
func (d *dispatcher) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	_, err := d.hold(ctx)
	return err
}

// leave lets other nodes have the sink at once. By then nothing of this node's is on
// its way: what the next one carries must not meet it.
func (d *dispatcher) leave() {
	if err := d.stop(); err != nil {
		d.log.Debug("a sink was not closed", "sink", d.name, "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// Otherwise the lease ends by itself.
	if err := d.src.LetSinkGo(ctx, d.name, d.owner); err != nil {
		d.log.Debug("a sink was not let go", "sink", d.name, "err", err)
	}
}

// turn holds the sink, if it can be had, and carries events until something
// fails; worked says that some were carried. It calls carried each time.
func (d *dispatcher) turn(ctx context.Context, carried func()) (worked bool, err error) {
	if d.wanted != nil {
		if wanted, err := d.wanted(ctx); err != nil || !wanted {
			wait.Sleep(ctx, 4*d.poll)
			return false, err
		}
	}
	st, err := d.hold(ctx)
	if err != nil {
		return false, err
	}
	if st.Owner != d.owner {
		// Another node does it; it may end.
		wait.Sleep(ctx, d.lease/4)
		return false, nil
	}
	for taken, held := st.Taken, time.Now(); ctx.Err() == nil; {
		if time.Since(held) > d.lease/4 {
			if d.wanted != nil {
				if wanted, err := d.wanted(ctx); err != nil || !wanted {
					return worked, err
				}
			}
			// A place that another node has moved means that this one was away for
			// longer than its lease.
			if st, err := d.hold(ctx); err != nil || st.Owner != d.owner || st.Taken != taken {
				return worked, err
			}
			held = time.Now()
		}
		batch, last, err := d.src.After(ctx, taken, publishMost)
		if err != nil {
			return worked, err
		}
		if last == taken {
			wait.Sleep(ctx, d.poll)
			continue
		}
		if err := d.carry(ctx, batch, taken, last); err != nil {
			return worked, err
		}
		if len(batch) > 0 {
			carried()
		}
		taken, held, worked = last, time.Now(), true
	}
	return worked, nil
}

func (d *dispatcher) hold(ctx context.Context) (events.SinkState, error) {
	asked := time.Now()
	st, err := d.src.HoldSink(ctx, d.name, d.owner, d.lease)
	if err == nil && st.Owner != d.owner && d.alone {
		if err = d.src.LetSinkGo(ctx, d.name, st.Owner); err == nil {
			st, err = d.src.HoldSink(ctx, d.name, d.owner, d.lease)
		}
	}
	if err == nil && st.Owner == d.owner {
		d.held(asked)
	} else if err == nil {
		d.heldFor.Store(0)
	}
	return st, err
}

// held notes that the lease began when it was asked for, or later.
func (d *dispatcher) held(asked time.Time) { d.heldFor.Store(int64(asked.Sub(d.begun) + d.lease)) }

// holds reports whether this node has the sink for some time yet.
func (d *dispatcher) holds(yet time.Duration) bool {
	return time.Since(d.begun)+yet < time.Duration(d.heldFor.Load())
}

// carry hands events on and moves the place behind them.
// A batch may be empty: rows that no event comes of are passed all the same.
func (d *dispatcher) carry(ctx context.Context, batch []events.Event, from, to int64) error {
	t := events.Taking{Name: d.name, Owner: d.owner, From: from, To: to, Events: len(batch), Lease: d.lease}
	asked := time.Now()
	moved, err := false, error(nil)
	if len(batch) > 0 {
		moved, err = d.hand(ctx, batch, &t)
	}
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, events.ErrSinkTaken) {
			return err
		}
		return errors.Join(err, d.src.SinkFailed(ctx, d.name, d.owner, err.Error()))
	}
	if !moved {
		asked = time.Now()
		err = d.src.TakeNews(ctx, t)
	}
	if err == nil {
		d.held(asked)
	}
	return err
}
