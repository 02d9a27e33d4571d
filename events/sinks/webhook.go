package sinks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/webhooks"
)

// Endpoints is where endpoints are kept, as *webhooks.Webhooks has them, and the ledger,
// where deliveries are.
type Endpoints interface {
	List(ctx context.Context) ([]webhooks.WebhookEndpoint, error)
	Disable(ctx context.Context, id, reason string) error
	webhooks.DeliveryLedger
}

// WebhookConfig configures the posting to endpoints. The zero value of a field
// means the default named beside it.
type WebhookConfig struct {
	// AllowPrivate lets endpoints be in private networks.
	AllowPrivate bool
	// Timeout bounds one attempt, its answer included; default 10s.
	Timeout time.Duration
	// Schedule are the pauses before the second, third … attempt; one attempt
	// more than there are pauses is made. Default: 5s to 12h, 11 attempts in 28
	// hours.
	Schedule []time.Duration
	// Keep is how long finished deliveries are listed; default 7 days.
	Keep time.Duration
	// GiveUpAfter is how long every attempt at an endpoint fails before it is
	// disabled; default 5 days.
	GiveUpAfter time.Duration
	// MaxWaiting is how many deliveries may wait for an endpoint: when there are
	// more, it is disabled; default 1,000,000.
	MaxWaiting int
}

var webhookSchedule = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

func (c WebhookConfig) withDefaults() WebhookConfig {
	if len(c.Schedule) == 0 {
		c.Schedule = webhookSchedule
	}
	c.Timeout = positive(c.Timeout, 10*time.Second)
	c.Keep = positive(c.Keep, 7*24*time.Hour)
	c.GiveUpAfter = positive(c.GiveUpAfter, 5*24*time.Hour)
	c.MaxWaiting = positive(c.MaxWaiting, 1_000_000)
	return c
}

// positive is the value of a setting, or its default where it is not above 0.
func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

const (
	// roundMost is how many deliveries are attempted in one round of an endpoint,
	// and posters how many of them at a time.
	roundMost = 64
	// roundsMost is how many rounds follow one another before an endpoint is read
	// again.
	roundsMost = 100
	posters    = 8
	// restMax bounds the rest of an endpoint of which every attempt fails.
	restMax = time.Minute
	// trimEvery is how often finished deliveries are dropped that are old, and
	// countEvery how often those that wait are counted.
	trimEvery  = 10 * time.Minute
	countEvery = time.Minute
)

// deliverer turns events into deliveries, and posts these.
//
// The dispatcher's goroutine queues, another one starts rounds, and each round is a
// goroutine of its own. mu guards what stands below it and is never held during a
// call. An endpoint has at most one round at a time. owed is written by that round,
// and cleared when the lease is lost.
type deliverer struct {
	endpoints Endpoints
	*dispatcher
	cfg  WebhookConfig
	post *poster

	mu sync.Mutex
	// busy are endpoints of which a round runs, rests those that rest. owed is what
	// became of attempts that the ledger has not taken yet. troubles is what the log says
	// of endpoints while this node has them, own what it says of this node's loops.
	busy     map[string]bool
	rests    map[string]restUntil
	owed     map[string]*roundResult
	troubles *trouble.Log
	own      *trouble.Log
	rounds   sync.WaitGroup
}

type restUntil struct {
	at time.Time
	// last is how long the rest was.
	last time.Duration
}

func newWebhooks(cfg *Config) *deliverer {
	w := &deliverer{
		endpoints: cfg.Endpoints, cfg: cfg.Webhooks.withDefaults(), busy: map[string]bool{}, rests: map[string]restUntil{},
		owed: map[string]*roundResult{}, troubles: trouble.New(cfg.Logger, slog.LevelWarn), own: trouble.New(cfg.Logger, slog.LevelWarn),
	}
	w.post = newPoster(&w.cfg)
	w.dispatcher = &dispatcher{
		src: cfg.Feed, name: webhooks.WebhookSink, owner: cfg.Owner, poll: cfg.Poll, lease: cfg.Lease, alone: cfg.Alone, log: cfg.Logger,
		hand: w.queue, wanted: w.wanted, stop: w.post.close, begun: time.Now(),
	}
	return w
}

// run queues and posts until ctx ends.
func (w *deliverer) run(ctx context.Context) {
	var posting sync.WaitGroup
	posting.Go(func() { w.postAll(ctx) })
	w.dispatcher.run(ctx)
	posting.Wait()
	// Attempts are noted before another node looks for deliveries that are due.
	w.rounds.Wait()
	w.leave()
}

func (w *deliverer) wanted(ctx context.Context) (bool, error) {
	list, err := w.endpoints.List(ctx)
	return len(list) > 0, err
}

// queue makes deliveries of events, and moves the place with them.
// Deliveries and the place are written in one transaction: a crash in between neither
// loses an event nor queues it twice.
func (w *deliverer) queue(ctx context.Context, events []events.Event, t *events.Taking) (moved bool, err error) {
	endpoints, err := w.endpoints.List(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now().Truncate(time.Millisecond)
	var list []webhooks.WebhookDelivery
	for i := range events {
		for j := range endpoints {
			if !endpoints[j].Wants(events[i].Type) {
				continue
			}
			d, err := webhooks.NewDelivery(endpoints[j].ID, &events[i], now)
			if err != nil {
				return false, err
			}
			list = append(list, d)
		}
	}
	err = w.endpoints.QueueDeliveries(ctx, t, list)
	return err == nil, err
}

// postAll posts what is due while this node has the webhooks.
func (w *deliverer) postAll(ctx context.Context) {
	trimmed, counted := time.Now(), time.Now()
	for ctx.Err() == nil {
		// An attempt that begins now is over before the lease is.
		if w.holds(min(w.cfg.Timeout, w.lease/2)) {
			w.noted(ctx, "webhooks wait", "webhooks go on", w.startRounds(ctx))
			if time.Since(trimmed) > trimEvery {
				trimmed = time.Now()
				_, err := w.endpoints.TrimDeliveries(ctx, trimmed.Add(-w.cfg.Keep))
				w.noted(ctx, "old deliveries of webhooks stay", "old deliveries of webhooks are dropped again", err)
			}
			if time.Since(counted) > countEvery {
				counted = time.Now()
				w.noted(ctx, "deliveries of webhooks are not counted", "deliveries of webhooks are counted again", w.boundWaiting(ctx))
			}
		} else {
			// Another node has them, and does what is owed again.
			w.mu.Lock()
			clear(w.owed)
			w.mu.Unlock()
			w.troubles.ForgetAll()
		}
		wait.Sleep(ctx, w.poll)
	}
}

// noted logs what fails with an error that is not this node's end, and that it is over.
func (w *deliverer) noted(ctx context.Context, what, again string, err error) {
	switch {
	case err == nil:
		w.own.Over(what, again)
	case ctx.Err() == nil:
		w.own.Is(what, what, err)
	}
}

// boundWaiting disables endpoints for which too many deliveries wait.
func (w *deliverer) boundWaiting(ctx context.Context) error {
	endpoints, err := w.endpoints.List(ctx)
	if err != nil {
		return err
	}
	for i := range endpoints {
		e := &endpoints[i]
		if e.Disabled {
			continue
		}
		// Those of before it was enabled again are being posted: it begins anew.
		n, err := w.endpoints.WaitingDeliveries(ctx, e.ID, e.UpdatedAt, w.cfg.MaxWaiting+1)
		if err != nil {
			return err
		}
		if n > w.cfg.MaxWaiting {
			if err := w.disable(ctx, e, fmt.Sprintf(webhooks.TooManyWait.EN, strconv.Itoa(w.cfg.MaxWaiting))); err != nil {
				return err
			}
		}
	}
	return nil
}

// disable ends the deliveries to an endpoint for a reason that its owner reads.
func (w *deliverer) disable(ctx context.Context, e *webhooks.WebhookEndpoint, reason string) error {
	w.log.Warn("a webhook is disabled: "+reason, "endpoint", e.ID, "host", e.WebhookHost())
	err := w.endpoints.Disable(ctx, e.ID, reason)
	if errors.Is(err, dibs.ErrNotFound) {
		// It was deleted meanwhile.
		return nil
	}
	return err
}

// startRounds starts a round for each endpoint that has none and does not rest.
func (w *deliverer) startRounds(ctx context.Context) error {
	endpoints, err := w.endpoints.List(ctx)
	if err != nil {
		return err
	}
	for i := range endpoints {
		e := &endpoints[i]
		w.mu.Lock()
		free := !e.Disabled && !w.busy[e.ID] && !time.Now().Before(w.rests[e.ID].at)
		if free {
			w.busy[e.ID] = true
		}
		w.mu.Unlock()
		if !free {
			continue
		}
		w.rounds.Go(func() {
			err := w.someRounds(ctx, e)
			if err != nil {
				w.rest(e)
			}
			w.mu.Lock()
			delete(w.busy, e.ID)
			w.mu.Unlock()
			switch name := "rounds of " + e.ID; {
			case err == nil:
				w.troubles.Over(name, "deliveries of a webhook go on", "endpoint", e.ID)
			case ctx.Err() == nil:
				w.troubles.Is(name, "deliveries of a webhook wait", err, "endpoint", e.ID)
			}
		})
	}
	return nil
}

// someRounds runs rounds for an endpoint for as long as they are full and all is
// taken, up to roundsMost: then it is looked at anew.
func (w *deliverer) someRounds(ctx context.Context, e *webhooks.WebhookEndpoint) error {
	for range roundsMost {
		full, err := w.round(ctx, e)
		if err != nil || !full || ctx.Err() != nil || !w.holds(min(w.cfg.Timeout, w.lease/2)) {
			return err
		}
	}
	return nil
}

// rest leaves an endpoint alone for a while, each time for longer.
// An endpoint that is down costs one round a minute.
func (w *deliverer) rest(e *webhooks.WebhookEndpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := min(max(2*w.rests[e.ID].last, w.poll), restMax)
	w.rests[e.ID] = restUntil{at: time.Now().Add(rest), last: rest}
}

// round attempts what is due for one endpoint: subjects beside one another, the
// deliveries of one subject in order. full says that there were as many as a round
// takes, and that all were good.
func (w *deliverer) round(ctx context.Context, e *webhooks.WebhookEndpoint) (full bool, err error) {
	w.mu.Lock()
	owed := w.owed[e.ID]
	w.mu.Unlock()
	if owed != nil {
		// Attempts are noted before a delivery would be posted again.
		return false, w.conclude(ctx, e, owed)
	}
	due, err := w.endpoints.DueDeliveries(ctx, e.ID, time.Now(), roundMost)
	if err != nil || len(due) == 0 {
		return false, err
	}
	bySubject := make(map[string][]*webhooks.WebhookDelivery)
	var subjects []string
	for i := range due {
		d := &due[i]
		if len(bySubject[d.Subject]) == 0 {
			subjects = append(subjects, d.Subject)
		}
		bySubject[d.Subject] = append(bySubject[d.Subject], d)
	}
	r := &roundResult{}
	var all sync.WaitGroup
	free := make(chan struct{}, posters)
	for _, subject := range subjects {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			for _, d := range bySubject[subject] {
				if !w.attempt(ctx, e, d, r) {
					return
				}
			}
		})
	}
	all.Wait()
	if len(r.attempts) == 0 {
		return false, nil
	}
	if r.good == 0 {
		w.rest(e)
	}
	w.reached(e, r)
	return r.good == roundMost, w.conclude(ctx, e, r)
}

// reached logs that an endpoint takes nothing, at once and then rarely, and that it
// takes deliveries again: an owner who mistyped an address must not wait until it is
// disabled. One that answers 410 is disabled at once, which is logged there.
func (w *deliverer) reached(e *webhooks.WebhookEndpoint, r *roundResult) {
	switch {
	case r.good > 0:
		w.troubles.Over(e.ID, "a webhook takes events again", "endpoint", e.ID, "host", e.WebhookHost())
	case r.gone:
		w.troubles.Forget(e.ID)
	default:
		// Without the address, which may have a token in it.
		problem := errors.New(r.attempts[len(r.attempts)-1].Problem)
		w.troubles.Is(e.ID, "a webhook cannot be reached, or refuses: its events wait", problem, "endpoint", e.ID, "host", e.WebhookHost())
	}
}

// roundResult is what a round came to.
//
// mu guards all fields while the round's posters run. Once they have ended, the round's
// goroutine alone has it, and attempts does not change any more.
type roundResult struct {
	mu       sync.Mutex
	attempts []webhooks.WebhookDelivery
	good     int
	gone     bool
}

// attempt posts a delivery and reports whether the next of its subject may
// follow.
func (w *deliverer) attempt(ctx context.Context, e *webhooks.WebhookEndpoint, d *webhooks.WebhookDelivery, r *roundResult) bool {
	r.mu.Lock()
	gone := r.gone
	r.mu.Unlock()
	// Without the lease another node may be posting the same delivery.
	if gone || ctx.Err() != nil || !w.holds(0) {
		return false
	}
	a := w.post.post(ctx, e, d)
	if ctx.Err() != nil {
		// This node stops: what became of it, the next attempt finds out.
		return false
	}
	now := time.Now().Truncate(time.Millisecond)
	d.Attempts++
	d.Answer, d.Problem, d.UpdatedAt = a.status, a.problem, now
	switch {
	case a.problem == "":
		d.Status = webhooks.DeliveryDelivered
	case a.gone || d.Attempts > len(w.cfg.Schedule):
		d.Status = webhooks.DeliveryFailed
	// The next of its subject waits, so that events of one subject arrive in order.
	default:
		d.NextAt = now.Add(max(w.cfg.Schedule[d.Attempts-1], a.after))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, *d)
	r.gone = r.gone || a.gone
	if a.problem == "" {
		r.good++
	}
	return d.Status != webhooks.DeliveryPending
}

// conclude stores what became of a round's attempts, now or, when the ledger
// does not take it, before the next round.
func (w *deliverer) conclude(ctx context.Context, e *webhooks.WebhookEndpoint, r *roundResult) error {
	// Attempts are noted even when this node stops now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := w.endpoints.FinishDeliveries(ctx, r.attempts)
	w.mu.Lock()
	if err != nil {
		w.owed[e.ID] = r
	} else {
		delete(w.owed, e.ID)
		if r.good > 0 {
			delete(w.rests, e.ID)
		}
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if r.gone {
		return w.disable(ctx, e, webhooks.AnsweredGone.EN)
	}
	if r.good > 0 && e.FailingSince.IsZero() {
		return nil
	}
	failing, err := w.endpoints.NoteAttempts(ctx, e.ID, r.good > 0)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil
	}
	if err == nil && failing >= w.cfg.GiveUpAfter {
		err = w.disable(ctx, e, fmt.Sprintf(webhooks.AlwaysFailed.EN, inWords(w.cfg.GiveUpAfter)))
	}
	return err
}

// inWords is a time in days, where it is some.
func inWords(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", days)
	}
	return d.String()
}
