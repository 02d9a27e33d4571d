package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// WebhookSource is where endpoints and deliveries are kept: *dibs.Service.
type WebhookSource interface {
	Endpoints(ctx context.Context) ([]dibs.WebhookEndpoint, error)
	DisableEndpoint(ctx context.Context, id, reason string) error
	QueueDeliveries(ctx context.Context, taken *dibs.Taking, deliveries []dibs.WebhookDelivery) error
	DueDeliveries(ctx context.Context, endpoint string, now time.Time, max int) ([]dibs.WebhookDelivery, error)
	FinishDeliveries(ctx context.Context, deliveries []dibs.WebhookDelivery) error
	TrimDeliveries(ctx context.Context, before time.Time) error
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
}

var webhookSchedule = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

func (c WebhookConfig) withDefaults() WebhookConfig {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if len(c.Schedule) == 0 {
		c.Schedule = webhookSchedule
	}
	if c.Keep <= 0 {
		c.Keep = 7 * 24 * time.Hour
	}
	return c
}

const (
	// roundMost is how many deliveries are attempted in one round of an endpoint,
	// and posters how many of them at a time.
	roundMost = 64
	posters   = 8
	// restMax bounds the rest of an endpoint of which every attempt fails.
	restMax = time.Minute
	// trimEvery is how often finished deliveries are dropped that are old.
	trimEvery = 10 * time.Minute
)

// webhooks turns events into deliveries, and posts these.
type webhooks struct {
	*dispatcher
	cfg  WebhookConfig
	post *poster
	log  *slog.Logger

	mu sync.Mutex
	// busy are endpoints of which a round runs, rests those that rest.
	busy   map[string]bool
	rests  map[string]restUntil
	rounds sync.WaitGroup
}

type restUntil struct {
	at time.Time
	// last is how long the rest was.
	last time.Duration
}

func newWebhooks(cfg *Config) *webhooks {
	w := &webhooks{cfg: cfg.Webhooks.withDefaults(), log: cfg.Logger, busy: map[string]bool{}, rests: map[string]restUntil{}}
	w.post = newPoster(&w.cfg)
	w.dispatcher = &dispatcher{
		src: cfg.Source, name: dibs.WebhookSink, owner: cfg.Owner, poll: cfg.Poll, lease: cfg.Lease, log: cfg.Logger,
		hand: w.queue, wanted: w.wanted, stop: w.post.close,
	}
	return w
}

// run queues and posts until ctx ends.
func (w *webhooks) run(ctx context.Context) {
	var posting sync.WaitGroup
	posting.Go(func() { w.postAll(ctx) })
	w.dispatcher.run(ctx)
	posting.Wait()
	w.rounds.Wait()
}

func (w *webhooks) wanted(ctx context.Context) (bool, error) {
	list, err := w.src.Endpoints(ctx)
	return len(list) > 0, err
}

// queue makes deliveries of events, and moves the place with them.
func (w *webhooks) queue(ctx context.Context, events []dibs.Event, t *dibs.Taking) (moved bool, err error) {
	endpoints, err := w.src.Endpoints(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now().Truncate(time.Millisecond)
	var list []dibs.WebhookDelivery
	for i := range events {
		for j := range endpoints {
			if !endpoints[j].Wants(events[i].Type) {
				continue
			}
			d, err := dibs.NewDelivery(endpoints[j].ID, &events[i], now)
			if err != nil {
				return false, err
			}
			list = append(list, d)
		}
	}
	err = w.src.QueueDeliveries(ctx, t, list)
	return err == nil, err
}

// postAll posts what is due while this node has the webhooks.
func (w *webhooks) postAll(ctx context.Context) {
	trimmed := time.Now()
	for ctx.Err() == nil {
		// An attempt that begins now is over before the lease is.
		if time.Now().Add(min(w.cfg.Timeout, w.lease/2)).UnixMilli() < w.heldUntil.Load() {
			if err := w.startRounds(ctx); err != nil && ctx.Err() == nil {
				w.log.Warn("webhooks wait", "err", err)
			}
			if time.Since(trimmed) > trimEvery {
				trimmed = time.Now()
				if err := w.src.TrimDeliveries(ctx, trimmed.Add(-w.cfg.Keep)); err != nil && ctx.Err() == nil {
					w.log.Warn("old deliveries of webhooks stay", "err", err)
				}
			}
		}
		wait(ctx, w.poll)
	}
}

// startRounds starts a round for each endpoint that has none and does not rest.
func (w *webhooks) startRounds(ctx context.Context) error {
	endpoints, err := w.src.Endpoints(ctx)
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
			err := w.round(ctx, e)
			w.mu.Lock()
			delete(w.busy, e.ID)
			w.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				w.log.Warn("deliveries of a webhook wait", "endpoint", e.ID, "err", err)
			}
		})
	}
	return nil
}

// round attempts what is due for one endpoint: subjects beside one another, the
// deliveries of one subject in order.
func (w *webhooks) round(ctx context.Context, e *dibs.WebhookEndpoint) error {
	due, err := w.src.DueDeliveries(ctx, e.ID, time.Now(), roundMost)
	if err != nil || len(due) == 0 {
		return err
	}
	bySubject := make(map[string][]*dibs.WebhookDelivery)
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
	return w.conclude(ctx, e, r)
}

// roundResult is what a round came to.
type roundResult struct {
	mu       sync.Mutex
	attempts []dibs.WebhookDelivery
	good     int
	gone     bool
}

// attempt posts a delivery and reports whether the next of its subject may
// follow.
func (w *webhooks) attempt(ctx context.Context, e *dibs.WebhookEndpoint, d *dibs.WebhookDelivery, r *roundResult) bool {
	r.mu.Lock()
	gone := r.gone
	r.mu.Unlock()
	if gone || ctx.Err() != nil || time.Now().UnixMilli() > w.heldUntil.Load() {
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
		d.Status = dibs.DeliveryDelivered
	case a.gone || d.Attempts > len(w.cfg.Schedule):
		d.Status = dibs.DeliveryFailed
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
	return d.Status != dibs.DeliveryPending
}

// conclude stores what became of a round's attempts.
func (w *webhooks) conclude(ctx context.Context, e *dibs.WebhookEndpoint, r *roundResult) error {
	if len(r.attempts) == 0 {
		return nil
	}
	w.mu.Lock()
	if r.good > 0 {
		delete(w.rests, e.ID)
	} else {
		rest := min(max(2*w.rests[e.ID].last, w.poll), restMax)
		w.rests[e.ID] = restUntil{at: time.Now().Add(rest), last: rest}
	}
	w.mu.Unlock()
	// What was posted is noted even when this node stops now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := w.src.FinishDeliveries(ctx, r.attempts); err != nil {
		return err
	}
	if r.gone {
		w.log.Warn("a webhook is disabled: its endpoint answered 410 Gone", "endpoint", e.ID, "host", e.WebhookHost())
		return w.src.DisableEndpoint(ctx, e.ID, "it answered 410 Gone")
	}
	return nil
}
