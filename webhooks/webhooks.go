package webhooks

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
)

// Ledger keeps endpoints and deliveries.
type Ledger interface {
	// InsertEndpoint stores a new endpoint, which gets what happens from then on.
	// *Error of InvalidState when there are MaxEndpoints.
	InsertEndpoint(ctx context.Context, e *WebhookEndpoint) error
	// UpdateEndpoint stores e where the stored Version is e.Version, and raises it
	// in e. ErrConflict, ErrNotFound.
	UpdateEndpoint(ctx context.Context, e *WebhookEndpoint) error
	// DeleteEndpoint drops an endpoint with its deliveries. ErrNotFound.
	DeleteEndpoint(ctx context.Context, id string) error
	// Endpoint returns one. ErrNotFound.
	Endpoint(ctx context.Context, id string) (*WebhookEndpoint, error)
	// Endpoints lists all by id.
	Endpoints(ctx context.Context) ([]WebhookEndpoint, error)
	// Deliveries lists an endpoint's, newest first; an empty status is any.
	Deliveries(ctx context.Context, endpoint string, status DeliveryStatus, page dibs.Page) (dibs.List[WebhookDelivery], error)
	// Redeliver makes deliveries due again and returns how many: the one of an
	// event, or with an empty event all that failed.
	Redeliver(ctx context.Context, endpoint, event string, now time.Time) (int64, error)
	DeliveryLedger
}

// DeliveryLedger is what posting the events needs of the ledger.
type DeliveryLedger interface {
	// QueueDeliveries stores deliveries and notes what was taken of the feed, in
	// one transaction; taken is nil when nothing was. A delivery that is there
	// already, and one to an endpoint that is gone, is left out. ErrSinkTaken.
	QueueDeliveries(ctx context.Context, taken *events.Taking, deliveries []WebhookDelivery) error
	// DueDeliveries returns the oldest deliveries of an endpoint that are due,
	// but none of a subject of which an older one has to wait.
	DueDeliveries(ctx context.Context, endpoint string, now time.Time, max int) ([]WebhookDelivery, error)
	// FinishDeliveries stores what became of attempts at deliveries that are
	// pending. One that another process has overtaken, which has the lease by now,
	// changes nothing, unless it has delivered.
	FinishDeliveries(ctx context.Context, deliveries []WebhookDelivery) error
	// NoteAttempts notes that attempts at an endpoint were made, of which some were
	// good or all failed, and returns for how long all have failed. ErrNotFound.
	NoteAttempts(ctx context.Context, endpoint string, good bool) (failing time.Duration, err error)
	// WaitingDeliveries counts the deliveries of an endpoint that are pending and were
	// made at a time or later, up to max.
	WaitingDeliveries(ctx context.Context, endpoint string, since time.Time, max int) (int, error)
	// TrimDeliveries drops deliveries that were finished before a time, and those
	// that wait since then for an endpoint that is disabled.
	TrimDeliveries(ctx context.Context, before time.Time) (dropped int64, err error)
}

// Webhooks keeps the endpoints that events are posted to, and their deliveries. All methods
// are safe for concurrent use.
type Webhooks struct {
	ledger  Ledger
	now     func() time.Time
	private bool
	// webhooksSeen is how the endpoints were when they were looked at last.
	webhooksSeen atomic.Pointer[webhooksSeen]
}

// New returns Webhooks. private lets endpoints be in private networks, and
// be plain HTTP.
func New(ledger Ledger, now func() time.Time, private bool) *Webhooks {
	return &Webhooks{ledger: ledger, now: now, private: private}
}

// How long an old secret signs beside the new one.
const (
	keepOldSecret    = 24 * time.Hour
	maxKeepOldSecret = 7 * 24 * time.Hour
)

// Create adds an endpoint. Its secret is shown this once. *Error of
// InvalidRequest.
func (s *Webhooks) Create(ctx context.Context, spec EndpointSpec) (EndpointView, error) {
	now := dibs.Ms(s.now())
	e := &WebhookEndpoint{
		ID: dibs.NewID("wh-"), URL: spec.URL, Description: spec.Description, Types: spec.Types, Secret: newWebhookSecret(),
		Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	if fs := e.faults(s.private); len(fs) > 0 {
		return EndpointView{}, dibs.Invalid(fs...)
	}
	if err := s.ledger.InsertEndpoint(ctx, e); err != nil {
		return EndpointView{}, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	v := e.View()
	v.Secret = e.Secret
	return v, nil
}

// Get returns an endpoint. ErrNotFound.
func (s *Webhooks) Get(ctx context.Context, id string) (*WebhookEndpoint, error) {
	e, err := s.ledger.Endpoint(ctx, id)
	return e, dibs.AsUnavailable(err, dibs.EffectNone)
}

// List lists all endpoints by id.
func (s *Webhooks) List(ctx context.Context) ([]WebhookEndpoint, error) {
	list, err := s.ledger.Endpoints(ctx)
	return list, dibs.AsUnavailable(err, dibs.EffectNone)
}

// Patch changes an endpoint. *Error of InvalidRequest; ErrNotFound.
func (s *Webhooks) Patch(ctx context.Context, id string, p EndpointPatch) (*WebhookEndpoint, error) {
	return s.change(ctx, id, func(e *WebhookEndpoint) error {
		dibs.Set(&e.URL, p.URL)
		dibs.Set(&e.Description, p.Description)
		dibs.Set(&e.Types, p.Types)
		if p.Disabled != nil {
			e.Disabled, e.DisabledReason = *p.Disabled, ""
			if *p.Disabled {
				e.DisabledReason = "by an admin"
			}
		}
		if fs := e.faults(s.private); len(fs) > 0 {
			return dibs.Invalid(fs...)
		}
		return nil
	})
}

// Disable stops deliveries to an endpoint that does not want any.
func (s *Webhooks) Disable(ctx context.Context, id, reason string) error {
	_, err := s.change(ctx, id, func(e *WebhookEndpoint) error {
		e.Disabled, e.DisabledReason = true, reason
		return nil
	})
	return err
}

// RotateSecret gives an endpoint another secret, shown this once. The old one
// signs too for a while.
func (s *Webhooks) RotateSecret(ctx context.Context, id string, r RotateSpec) (EndpointView, error) {
	keep := keepOldSecret
	if r.KeepOldFor != nil {
		keep = r.KeepOldFor.Std()
	}
	if keep < 0 || keep > maxKeepOldSecret {
		return EndpointView{}, dibs.Invalid(dibs.Fault{Field: "/keep_old_for", Problem: dibs.Textf("must be from 0s to %s", "必须在 0s 到 %s 之间", maxKeepOldSecret)})
	}
	e, err := s.change(ctx, id, func(e *WebhookEndpoint) error {
		e.OldSecret, e.OldUntil, e.Secret = e.Secret, dibs.Ms(s.now().Add(keep)), newWebhookSecret()
		if keep == 0 {
			e.OldSecret, e.OldUntil = "", time.Time{}
		}
		return nil
	})
	if err != nil {
		return EndpointView{}, err
	}
	v := e.View()
	v.Secret = e.Secret
	return v, nil
}

func (s *Webhooks) change(ctx context.Context, id string, change func(*WebhookEndpoint) error) (*WebhookEndpoint, error) {
	for range dibs.MaxConflicts {
		e, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := change(e); err != nil {
			return nil, err
		}
		e.UpdatedAt = dibs.Ms(s.now())
		if err = s.ledger.UpdateEndpoint(ctx, e); errors.Is(err, dibs.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
		}
		return e, nil
	}
	return nil, dibs.Unavail(dibs.EffectNone, dibs.ErrConflict)
}

// Delete drops an endpoint with its deliveries. ErrNotFound.
func (s *Webhooks) Delete(ctx context.Context, id string) error {
	return dibs.AsUnavailable(s.ledger.DeleteEndpoint(ctx, id), dibs.EffectUnknown)
}

// Test queues an event that only tries an endpoint, and returns its
// id. *Error of InvalidState while it is disabled.
func (s *Webhooks) Test(ctx context.Context, id string) (string, error) {
	endpoint, err := s.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if endpoint.Disabled {
		return "", dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the endpoint is disabled", ZH: "该端点已停用"})
	}
	now := dibs.Ms(s.now())
	// A subject of its own: a test does not wait for the retries of the one before.
	test := dibs.NewID("test-")
	e, err := events.NewEvent(test, events.EventTypeTest, test, now, struct {
		Endpoint string `json:"endpoint"`
	}{id})
	if err != nil {
		return "", err
	}
	d, err := NewDelivery(id, &e, now)
	if err != nil {
		return "", err
	}
	return e.ID, dibs.AsUnavailable(s.ledger.QueueDeliveries(ctx, nil, []WebhookDelivery{d}), dibs.EffectUnknown)
}

// NewDelivery is the delivery of an event to an endpoint, due at once.
func NewDelivery(endpoint string, e *events.Event, now time.Time) (WebhookDelivery, error) {
	body, err := e.Encode()
	return WebhookDelivery{
		Endpoint: endpoint, EventID: e.ID, Type: e.Type, Subject: e.Subject, Body: body,
		Status: DeliveryPending, NextAt: now, CreatedAt: now, UpdatedAt: now,
	}, err
}

// Deliveries lists an endpoint's deliveries, newest first; an empty status is
// any. ErrNotFound.
func (s *Webhooks) Deliveries(ctx context.Context, endpoint string, status DeliveryStatus, page dibs.Page) (dibs.List[WebhookDelivery], error) {
	if _, err := s.Get(ctx, endpoint); err != nil {
		return dibs.List[WebhookDelivery]{}, err
	}
	list, err := s.ledger.Deliveries(ctx, endpoint, status, page)
	return list, dibs.AsUnavailable(err, dibs.EffectNone)
}

// Redeliver makes an event be delivered again, whatever became of it, or with
// an empty event all that failed, and returns how many. ErrNotFound.
func (s *Webhooks) Redeliver(ctx context.Context, endpoint, event string) (int64, error) {
	if _, err := s.Get(ctx, endpoint); err != nil {
		return 0, err
	}
	n, err := s.ledger.Redeliver(ctx, endpoint, event, dibs.Ms(s.now()))
	if err != nil {
		return 0, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if n == 0 && event != "" {
		return 0, dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such delivery", ZH: "没有这条投递记录"})
	}
	return n, nil
}

// WebhookHost is the host of an endpoint, for logs: addresses may have tokens
// in them.
func (e *WebhookEndpoint) WebhookHost() string {
	_, rest, _ := strings.Cut(e.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return host
}

// Seen is how many endpoints were disabled, and how many failed, when See looked last.
func (s *Webhooks) Seen() (disabled, failing int64) {
	if seen := s.webhooksSeen.Load(); seen != nil {
		return seen.disabled, seen.failing
	}
	return 0, 0
}

// webhooksSeen is how the webhooks were when they were looked at last.
type webhooksSeen struct{ disabled, failing int64 }

// See notes how the webhooks are, for the metrics.
func (s *Webhooks) See(ctx context.Context) {
	list, err := s.ledger.Endpoints(ctx)
	if err != nil {
		// That the ledger does not answer is said elsewhere.
		return
	}
	var seen webhooksSeen
	for i := range list {
		switch {
		case list[i].Disabled:
			seen.disabled++
		case !list[i].FailingSince.IsZero():
			seen.failing++
		}
	}
	s.webhooksSeen.Store(&seen)
}
