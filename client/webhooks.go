package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/webhooks"
)

// Webhooks manages the endpoints that events are posted to, for admins.
type Webhooks struct{ *caller }

const endpointsPath = "/v1/webhook-endpoints"

func endpointPath(id string) string { return endpointsPath + "/" + url.PathEscape(id) }

// Create has events posted to an address. The answer has the secret
// that signs them, this once. With a key, the call can be repeated.
func (c Webhooks) Create(ctx context.Context, spec webhooks.EndpointSpec, key string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c.caller, http.MethodPost, endpointsPath, key, spec)
}

// List lists the webhook endpoints.
func (c Webhooks) List(ctx context.Context) (api.ListView[webhooks.EndpointView], error) {
	return admin[api.ListView[webhooks.EndpointView]](ctx, c.caller, http.MethodGet, endpointsPath, "", nil)
}

// Get returns an endpoint, without its secret.
func (c Webhooks) Get(ctx context.Context, id string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c.caller, http.MethodGet, endpointPath(id), "", nil)
}

// Patch changes an endpoint; nil fields stay.
func (c Webhooks) Patch(ctx context.Context, id string, p webhooks.EndpointPatch) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c.caller, http.MethodPatch, endpointPath(id), "", p)
}

// Delete drops an endpoint with its deliveries, and returns it as it
// was.
func (c Webhooks) Delete(ctx context.Context, id string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c.caller, http.MethodDelete, endpointPath(id), "", nil)
}

// RotateSecret gives an endpoint another secret, which the answer has.
func (c Webhooks) RotateSecret(ctx context.Context, id string, r webhooks.RotateSpec) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c.caller, http.MethodPost, endpointPath(id)+"/rotate-secret", "", r)
}

// Test has an event posted that only tries an endpoint, and returns the
// event's id.
func (c Webhooks) Test(ctx context.Context, id string) (string, error) {
	v, err := admin[struct {
		EventID string `json:"event_id"`
	}](ctx, c.caller, http.MethodPost, endpointPath(id)+"/test", "", nil)
	return v.EventID, err
}

// Deliveries lists an endpoint's deliveries, newest first; an empty status is
// any.
func (c Webhooks) Deliveries(ctx context.Context, id string, status webhooks.DeliveryStatus, page dibs.Page) (api.ListView[webhooks.DeliveryView], error) {
	q := pageQuery(page, "status", string(status))
	return list[webhooks.DeliveryView](ctx, c.caller, endpointPath(id)+"/deliveries", q, c.opts.AdminKey)
}

// Redeliver has an event posted again, or with an empty event all that were
// given up, and returns how many.
func (c Webhooks) Redeliver(ctx context.Context, id, event string) (int64, error) {
	body := map[string]any{"failed": true}
	if event != "" {
		body = map[string]any{"event_id": event}
	}
	v, err := admin[struct {
		Redelivered int64 `json:"redelivered"`
	}](ctx, c.caller, http.MethodPost, endpointPath(id)+"/redeliver", "", body)
	return v.Redelivered, err
}
