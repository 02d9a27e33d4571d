package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// Events returns what happened after a place of the feed, about 500 events at
// most, and the place to go on from; after -1 it returns the place of now.
func (c *Client) Events(ctx context.Context, after int64) (list []events.Event, next int64, err error) {
	var v struct {
		Items []events.Event `json:"items"`
		After int64          `json:"after"`
	}
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/events", query: q, token: c.opts.AdminKey}, &v)
	return v.Items, v.After, err
}

// EventSinks tells how far each taker of the events is.
func (c *Client) EventSinks(ctx context.Context) (api.ListView[events.SinkView], error) {
	return admin[api.ListView[events.SinkView]](ctx, c, http.MethodGet, "/v1/event-sinks", "", nil)
}

const endpointsPath = "/v1/webhook-endpoints"

func endpointPath(id string) string { return endpointsPath + "/" + url.PathEscape(id) }

// CreateEndpoint has events posted to an address. The answer has the secret
// that signs them, this once. With a key, the call can be repeated.
func (c *Client) CreateEndpoint(ctx context.Context, spec webhooks.EndpointSpec, key string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c, http.MethodPost, endpointsPath, key, spec)
}

// Endpoints lists the webhook endpoints.
func (c *Client) Endpoints(ctx context.Context) (api.ListView[webhooks.EndpointView], error) {
	return admin[api.ListView[webhooks.EndpointView]](ctx, c, http.MethodGet, endpointsPath, "", nil)
}

// Endpoint returns an endpoint, without its secret.
func (c *Client) Endpoint(ctx context.Context, id string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c, http.MethodGet, endpointPath(id), "", nil)
}

// PatchEndpoint changes an endpoint; nil fields stay.
func (c *Client) PatchEndpoint(ctx context.Context, id string, p webhooks.EndpointPatch) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c, http.MethodPatch, endpointPath(id), "", p)
}

// DeleteEndpoint drops an endpoint with its deliveries, and returns it as it
// was.
func (c *Client) DeleteEndpoint(ctx context.Context, id string) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c, http.MethodDelete, endpointPath(id), "", nil)
}

// RotateSecret gives an endpoint another secret, which the answer has.
func (c *Client) RotateSecret(ctx context.Context, id string, r webhooks.RotateSpec) (webhooks.EndpointView, error) {
	return admin[webhooks.EndpointView](ctx, c, http.MethodPost, endpointPath(id)+"/rotate-secret", "", r)
}

// TestEndpoint has an event posted that only tries an endpoint, and returns the
// event's id.
func (c *Client) TestEndpoint(ctx context.Context, id string) (string, error) {
	v, err := admin[struct {
		EventID string `json:"event_id"`
	}](ctx, c, http.MethodPost, endpointPath(id)+"/test", "", nil)
	return v.EventID, err
}

// Deliveries lists an endpoint's deliveries, newest first; an empty status is
// any.
func (c *Client) Deliveries(ctx context.Context, id string, status webhooks.DeliveryStatus, page dibs.Page) (l api.ListView[webhooks.DeliveryView], err error) {
	q := pageQuery(page)
	if status != "" {
		q.Set("status", string(status))
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: endpointPath(id) + "/deliveries", query: q, token: c.opts.AdminKey}, &l)
	return l, err
}

// Redeliver has an event posted again, or with an empty event all that were
// given up, and returns how many.
func (c *Client) Redeliver(ctx context.Context, id, event string) (int64, error) {
	body := map[string]any{"failed": true}
	if event != "" {
		body = map[string]any{"event_id": event}
	}
	v, err := admin[struct {
		Redelivered int64 `json:"redelivered"`
	}](ctx, c, http.MethodPost, endpointPath(id)+"/redeliver", "", body)
	return v.Redelivered, err
}
