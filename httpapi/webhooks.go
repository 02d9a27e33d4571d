package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/webhooks"
)

// Webhooks is what the handlers of webhooks call. ErrNotFound for an id without an
// endpoint; *dibs.Error of InvalidRequest with every fault.
// A secret is shown once: a client that lost the answer rotates it.
type Webhooks interface {
	// Create and RotateSecret return the endpoint with its secret; the other
	// methods do not show it.
	Create(ctx context.Context, spec webhooks.EndpointSpec) (webhooks.EndpointView, error)
	Patch(ctx context.Context, id string, p webhooks.EndpointPatch) (*webhooks.WebhookEndpoint, error)
	RotateSecret(ctx context.Context, id string, r webhooks.RotateSpec) (webhooks.EndpointView, error)
	// Delete deletes the deliveries, too.
	Delete(ctx context.Context, id string) error
	Get(ctx context.Context, id string) (*webhooks.WebhookEndpoint, error)
	List(ctx context.Context) ([]webhooks.WebhookEndpoint, error)
	// Test queues an event that only tries the endpoint, and returns its id.
	// *dibs.Error of InvalidState while the endpoint is disabled.
	Test(ctx context.Context, id string) (string, error)
	// Deliveries lists deliveries, newest first; an empty status means all.
	Deliveries(ctx context.Context, endpoint string, status webhooks.DeliveryStatus, page dibs.Page) (dibs.List[webhooks.WebhookDelivery], error)
	// Redeliver delivers one event again, or with "" all that were given up, and returns
	// how many.
	Redeliver(ctx context.Context, endpoint, event string) (int64, error)
}

// deliveriesInput filters deliveries.
type deliveriesInput struct {
	PathID
	PageQuery
	Status string `query:"status" enum:"pending,delivered,failed" doc:"only these"`
}

// testView names the event that tries an endpoint.
type testView struct {
	EventID string `json:"event_id"`
}

// redeliverBody says what is delivered again.
type redeliverBody struct {
	EventID string `json:"event_id,omitempty" doc:"this one, whatever became of it"`
	Failed  bool   `json:"failed,omitempty" doc:"all that were given up"`
}

// redeliverView counts what is delivered again.
type redeliverView struct {
	Redelivered int64 `json:"redelivered"`
}

const endpointExample = `{"url":"https://shop.example/hooks/dibs","types":["dev.dibs.claim.granted","dev.dibs.claim.confirmed"]}`

// endpoint is an operation on endpoints; below is its path after theirs.
func endpoint(method, below, id, summary, description, example string) operation {
	return operation{
		method: method, path: "/v1/webhook-endpoints" + below, id: id, tag: tagEvents, access: adminOnly,
		summary: summary, description: description, example: example,
	}
}

// endpointsIn shows endpoints in the language of a call.
func endpointsIn(c *call) func(*webhooks.WebhookEndpoint) webhooks.EndpointView {
	return func(e *webhooks.WebhookEndpoint) webhooks.EndpointView { return e.View().In(c.zh) }
}

// registerEndpoints adds the routes that manage the endpoints of webhooks.
func registerEndpoints(a *routes, store Webhooks) {
	get := func(ctx context.Context, id string) (webhooks.EndpointView, error) {
		return viewOf((*webhooks.WebhookEndpoint).View)(store.Get(ctx, id))
	}
	subject(a, "/v1/webhook-endpoints/{id}", get)
	create := endpoint(http.MethodPost, "", "create-webhook-endpoint", "Have events posted to an address",
		"The answer has the secret that signs them, this once: a repeat by Idempotency-Key does not have it.", endpointExample)
	create.status = http.StatusCreated
	change(a, create, func(ctx context.Context, c *call, _ *struct{}, spec *webhooks.EndpointSpec) (webhooks.EndpointView, error) {
		v, err := store.Create(ctx, *spec)
		return v, c.located("/v1/webhook-endpoints/", v.ID, err)
	})
	register(a, endpoint(http.MethodGet, "", "list-webhook-endpoints", "List the endpoints by id", "", ""),
		func(ctx context.Context, c *call, _ *struct{}) (api.ListView[webhooks.EndpointView], error) {
			all, err := store.List(ctx)
			return listOf(endpointsIn(c))(dibs.List[webhooks.WebhookEndpoint]{Items: all}, err)
		})
	register(a, endpoint(http.MethodGet, "/{id}", "get-webhook-endpoint", "Show an endpoint", "", ""),
		func(ctx context.Context, c *call, in *PathID) (webhooks.EndpointView, error) {
			return viewOf(endpointsIn(c))(store.Get(ctx, in.ID))
		})
	change(a, endpoint(http.MethodPatch, "/{id}", "patch-webhook-endpoint", "Change an endpoint, or disable it",
		"Fields that are absent or null stay. Events of the time while it is disabled are not delivered later.", `{"disabled":false}`),
		func(ctx context.Context, c *call, in *PathID, p *webhooks.EndpointPatch) (webhooks.EndpointView, error) {
			return viewOf(endpointsIn(c))(store.Patch(ctx, in.ID, *p))
		})
	register(a, endpoint(http.MethodDelete, "/{id}", "delete-webhook-endpoint", "Delete an endpoint with its deliveries", "The answer is the endpoint as it was.", ""),
		func(ctx context.Context, _ *call, in *PathID) (webhooks.EndpointView, error) {
			v, err := get(ctx, in.ID)
			if err != nil {
				return v, err
			}
			return v, store.Delete(ctx, in.ID)
		})
	change(a, endpoint(http.MethodPost, "/{id}/rotate-secret", "rotate-webhook-secret", "Give an endpoint another secret",
		"The answer has it, this once: a repeat by Idempotency-Key does not have it. The old one signs too for `keep_old_for`, a day by default.", `{"keep_old_for":"1h"}`),
		func(ctx context.Context, _ *call, in *PathID, r *webhooks.RotateSpec) (webhooks.EndpointView, error) {
			return store.RotateSecret(ctx, in.ID, *r)
		})
}

// registerDeliveries adds the routes that show what is posted to endpoints, and post it again.
func registerDeliveries(a *routes, store Webhooks) {
	change(a, endpoint(http.MethodPost, "/{id}/test", "test-webhook-endpoint", "Post an event that only tries the endpoint",
		"It is of the type dev.dibs.webhook.test, and is posted whatever types the endpoint wants.", ""),
		func(ctx context.Context, _ *call, in *PathID, _ *noBody) (testView, error) {
			id, err := store.Test(ctx, in.ID)
			return testView{id}, err
		})
	list := endpoint(http.MethodGet, "/{id}/deliveries", "list-webhook-deliveries", "List an endpoint's deliveries, newest first",
		"Finished ones are kept for seven days, as are those that wait for an endpoint that is disabled.", "")
	list.strictQuery, list.personal = true, true
	register(a, list, func(ctx context.Context, c *call, in *deliveriesInput) (api.ListView[webhooks.DeliveryView], error) {
		view := func(d *webhooks.WebhookDelivery) webhooks.DeliveryView { return d.View().In(c.zh) }
		return listOf(view)(store.Deliveries(ctx, in.ID, webhooks.DeliveryStatus(in.Status), in.page()))
	})
	change(a, endpoint(http.MethodPost, "/{id}/redeliver", "redeliver-webhook", "Deliver again",
		"One event, whatever became of it, or all that were given up. It is the same event, with the same id.", `{"failed":true}`),
		func(ctx context.Context, _ *call, in *PathID, b *redeliverBody) (redeliverView, error) {
			if b.Failed == (b.EventID != "") {
				return redeliverView{}, dibs.Invalid(dibs.Fault{Field: "/event_id", Problem: dibs.Text{
					EN: "is required, or failed must be true, and not both", ZH: "event_id 与 failed 必须且只能提供一个",
				}})
			}
			n, err := store.Redeliver(ctx, in.ID, b.EventID)
			return redeliverView{n}, err
		})
}
