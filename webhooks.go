package dibs

import (
	"context"
	"errors"
	"strings"
	"time"
)

// How long an old secret signs beside the new one.
const (
	keepOldSecret    = 24 * time.Hour
	maxKeepOldSecret = 7 * 24 * time.Hour
)

// CreateEndpoint adds an endpoint. Its secret is shown this once. *Error of
// InvalidRequest.
func (s *Service) CreateEndpoint(ctx context.Context, spec EndpointSpec) (EndpointView, error) {
	now := ms(s.cfg.Now())
	e := &WebhookEndpoint{
		ID: newID("wh-"), URL: spec.URL, Description: spec.Description, Types: spec.Types, Secret: newWebhookSecret(),
		Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	if fs := e.faults(s.cfg.WebhookPrivate); len(fs) > 0 {
		return EndpointView{}, Invalid(fs...)
	}
	if err := s.ledger.InsertEndpoint(ctx, e); err != nil {
		return EndpointView{}, asUnavailable(err, EffectUnknown)
	}
	v := e.View()
	v.Secret = e.Secret
	return v, nil
}

// Endpoint returns an endpoint. ErrNotFound.
func (s *Service) Endpoint(ctx context.Context, id string) (*WebhookEndpoint, error) {
	e, err := s.ledger.Endpoint(ctx, id)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	return e, nil
}

// Endpoints lists all endpoints by id.
func (s *Service) Endpoints(ctx context.Context) ([]WebhookEndpoint, error) {
	list, err := s.ledger.Endpoints(ctx)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	return list, nil
}

// PatchEndpoint changes an endpoint. *Error of InvalidRequest; ErrNotFound.
func (s *Service) PatchEndpoint(ctx context.Context, id string, p EndpointPatch) (*WebhookEndpoint, error) {
	return s.changeEndpoint(ctx, id, func(e *WebhookEndpoint) error {
		set(&e.URL, p.URL)
		set(&e.Description, p.Description)
		set(&e.Types, p.Types)
		if p.Disabled != nil {
			e.Disabled, e.DisabledReason = *p.Disabled, ""
			if *p.Disabled {
				e.DisabledReason = "by an admin"
			}
		}
		if fs := e.faults(s.cfg.WebhookPrivate); len(fs) > 0 {
			return Invalid(fs...)
		}
		return nil
	})
}

// DisableEndpoint stops deliveries to an endpoint that does not want any.
func (s *Service) DisableEndpoint(ctx context.Context, id, reason string) error {
	_, err := s.changeEndpoint(ctx, id, func(e *WebhookEndpoint) error {
		e.Disabled, e.DisabledReason = true, reason
		return nil
	})
	return err
}

// RotateSecret gives an endpoint another secret, shown this once. The old one
// signs too for a while.
func (s *Service) RotateSecret(ctx context.Context, id string, r RotateSpec) (EndpointView, error) {
	keep := keepOldSecret
	if r.KeepOldFor != nil {
		keep = r.KeepOldFor.std()
	}
	if keep < 0 || keep > maxKeepOldSecret {
		return EndpointView{}, Invalid(Fault{"/keep_old_for", Textf("must be from 0s to %s", "必须在 0s 到 %s 之间", maxKeepOldSecret)})
	}
	e, err := s.changeEndpoint(ctx, id, func(e *WebhookEndpoint) error {
		e.OldSecret, e.OldUntil, e.Secret = e.Secret, ms(s.cfg.Now().Add(keep)), newWebhookSecret()
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

func (s *Service) changeEndpoint(ctx context.Context, id string, change func(*WebhookEndpoint) error) (*WebhookEndpoint, error) {
	for range maxConflicts {
		e, err := s.Endpoint(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := change(e); err != nil {
			return nil, err
		}
		e.UpdatedAt = ms(s.cfg.Now())
		if err = s.ledger.UpdateEndpoint(ctx, e); errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return nil, asUnavailable(err, EffectUnknown)
		}
		return e, nil
	}
	return nil, Unavail(EffectNone, ErrConflict)
}

// DeleteEndpoint drops an endpoint with its deliveries. ErrNotFound.
func (s *Service) DeleteEndpoint(ctx context.Context, id string) error {
	if err := s.ledger.DeleteEndpoint(ctx, id); err != nil {
		return asUnavailable(err, EffectUnknown)
	}
	return nil
}

// TestEndpoint queues an event that only tries an endpoint, and returns its
// id. *Error of InvalidState while it is disabled.
func (s *Service) TestEndpoint(ctx context.Context, id string) (string, error) {
	endpoint, err := s.Endpoint(ctx, id)
	if err != nil {
		return "", err
	}
	if endpoint.Disabled {
		return "", Fail(InvalidState, Text{"the endpoint is disabled", "该端点已停用"})
	}
	now := ms(s.cfg.Now())
	e, err := newEvent(newID("test-"), EventTypeTest, id, now, struct {
		Endpoint string `json:"endpoint"`
	}{id})
	if err != nil {
		return "", err
	}
	d, err := NewDelivery(id, &e, now)
	if err != nil {
		return "", err
	}
	if err := s.ledger.QueueDeliveries(ctx, nil, []WebhookDelivery{d}); err != nil {
		return "", asUnavailable(err, EffectUnknown)
	}
	return e.ID, nil
}

// NewDelivery is the delivery of an event to an endpoint, due at once.
func NewDelivery(endpoint string, e *Event, now time.Time) (WebhookDelivery, error) {
	body, err := encodeEvent(e)
	return WebhookDelivery{
		Endpoint: endpoint, EventID: e.ID, Type: e.Type, Subject: e.Subject, Body: body,
		Status: DeliveryPending, NextAt: now, CreatedAt: now, UpdatedAt: now,
	}, err
}

// Deliveries lists an endpoint's deliveries, newest first; an empty status is
// any. ErrNotFound.
func (s *Service) Deliveries(ctx context.Context, endpoint string, status DeliveryStatus, page Page) (List[WebhookDelivery], error) {
	if _, err := s.Endpoint(ctx, endpoint); err != nil {
		return List[WebhookDelivery]{}, err
	}
	list, err := s.ledger.Deliveries(ctx, endpoint, status, page)
	if err != nil {
		return list, asUnavailable(err, EffectNone)
	}
	return list, nil
}

// Redeliver makes an event be delivered again, whatever became of it, or with
// an empty event all that failed, and returns how many. ErrNotFound.
func (s *Service) Redeliver(ctx context.Context, endpoint, event string) (int64, error) {
	if _, err := s.Endpoint(ctx, endpoint); err != nil {
		return 0, err
	}
	n, err := s.ledger.Redeliver(ctx, endpoint, event, ms(s.cfg.Now()))
	if err != nil {
		return 0, asUnavailable(err, EffectUnknown)
	}
	if n == 0 && event != "" {
		return 0, Fail(NotFound, Text{"There is no such delivery", "没有这条投递记录"})
	}
	return n, nil
}

// QueueDeliveries, DueDeliveries and FinishDeliveries are those of Webhooks,
// for whoever delivers.

// QueueDeliveries is Webhooks.QueueDeliveries.
func (s *Service) QueueDeliveries(ctx context.Context, taken *Taking, deliveries []WebhookDelivery) error {
	return s.ledger.QueueDeliveries(ctx, taken, deliveries)
}

// DueDeliveries is Webhooks.DueDeliveries.
func (s *Service) DueDeliveries(ctx context.Context, endpoint string, now time.Time, max int) ([]WebhookDelivery, error) {
	return s.ledger.DueDeliveries(ctx, endpoint, now, max)
}

// FinishDeliveries is Webhooks.FinishDeliveries.
func (s *Service) FinishDeliveries(ctx context.Context, deliveries []WebhookDelivery) error {
	return s.ledger.FinishDeliveries(ctx, deliveries)
}

// NoteAttempts is Webhooks.NoteAttempts.
func (s *Service) NoteAttempts(ctx context.Context, endpoint string, good bool) (failing time.Duration, err error) {
	return s.ledger.NoteAttempts(ctx, endpoint, good)
}

// WaitingDeliveries is Webhooks.WaitingDeliveries.
func (s *Service) WaitingDeliveries(ctx context.Context, endpoint string, since time.Time, max int) (int, error) {
	return s.ledger.WaitingDeliveries(ctx, endpoint, since, max)
}

// TrimDeliveries is Webhooks.TrimDeliveries.
func (s *Service) TrimDeliveries(ctx context.Context, before time.Time) (dropped int64, err error) {
	return s.ledger.TrimDeliveries(ctx, before)
}

// WebhookHost is the host of an endpoint, for logs: addresses may have tokens
// in them.
func (e *WebhookEndpoint) WebhookHost() string {
	_, rest, _ := strings.Cut(e.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return host
}
