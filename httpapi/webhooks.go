package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

const tagEvents = "Events"

// eventsInput says from where on events are wanted.
type eventsInput struct {
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"after of the answer before; absent: from now on"`
}

// eventsView is a part of the feed.
type eventsView struct {
	Items []dibs.Event `json:"items"`
	// After is where to go on.
	After int64 `json:"after"`
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

// eventsMost is about how many events one answer has.
const eventsMost = 512

func (a *api) registerEvents() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/events", id: "list-events", tag: tagEvents, access: adminOnly, strictQuery: true,
		summary: "Follow what happens", description: "Events as sinks get them, of the last day at least: ask again with `after` of the answer.",
	}, func(ctx context.Context, _ *call, in *eventsInput) (eventsView, error) {
		items, after, err := a.svc.TailEvents(ctx, in.After, eventsMost)
		if items == nil {
			items = []dibs.Event{}
		}
		return eventsView{items, after}, err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/event-sinks", id: "list-event-sinks", tag: tagEvents, access: adminOnly,
		summary: "How far each taker of the events is",
	}, func(ctx context.Context, _ *call, _ *struct{}) (dibs.ListView[dibs.SinkView], error) {
		sinks, err := a.svc.Sinks(ctx)
		if sinks == nil {
			sinks = []dibs.SinkView{}
		}
		return dibs.ListView[dibs.SinkView]{Items: sinks}, err
	})
	a.registerEndpoints()
	a.registerDeliveries()
}

const endpointExample = `{"url":"https://shop.example/hooks/dibs","types":["dev.dibs.claim.granted","dev.dibs.claim.confirmed"]}`

// endpointOp is an operation on endpoints; what is below is its path after
// theirs.
func (a *api) endpointOp(method, below, id, summary, description, example string) operation {
	return operation{
		method: method, path: "/v1/webhook-endpoints" + below, id: id, tag: tagEvents, access: adminOnly,
		summary: summary, description: description, example: example, maxBody: a.cfg.MaxBody,
	}
}

func (a *api) registerEndpoints() {
	create := a.endpointOp(http.MethodPost, "", "create-webhook-endpoint", "Have events posted to an address",
		"The answer has the secret that signs them, this once: a repeat by Idempotency-Key does not have it.", endpointExample)
	create.status = http.StatusCreated
	change(a, create, func(ctx context.Context, c *call, _ *struct{}, spec *dibs.EndpointSpec) (dibs.EndpointView, error) {
		v, err := a.svc.CreateEndpoint(ctx, *spec)
		if err == nil {
			c.Header().Set("Location", "/v1/webhook-endpoints/"+v.ID)
		}
		return v, err
	})
	register(a, a.endpointOp(http.MethodGet, "", "list-webhook-endpoints", "List the endpoints by id", "", ""),
		func(ctx context.Context, _ *call, _ *struct{}) (dibs.ListView[dibs.EndpointView], error) {
			list, err := a.svc.Endpoints(ctx)
			return listOf(dibs.List[dibs.WebhookEndpoint]{Items: list}, (*dibs.WebhookEndpoint).View), err
		})
	register(a, a.endpointOp(http.MethodGet, "/{id}", "get-webhook-endpoint", "Show an endpoint", "", ""),
		func(ctx context.Context, _ *call, in *PathID) (dibs.EndpointView, error) {
			return endpointView(a.svc.Endpoint(ctx, in.ID))
		})
	change(a, a.endpointOp(http.MethodPatch, "/{id}", "patch-webhook-endpoint", "Change an endpoint, or disable it",
		"Fields that are absent or null stay. What happens while it is disabled is not delivered later.", `{"disabled":false}`),
		func(ctx context.Context, _ *call, in *PathID, p *dibs.EndpointPatch) (dibs.EndpointView, error) {
			return endpointView(a.svc.PatchEndpoint(ctx, in.ID, *p))
		})
	register(a, a.endpointOp(http.MethodDelete, "/{id}", "delete-webhook-endpoint", "Drop an endpoint with its deliveries", "The answer is the endpoint as it was.", ""),
		func(ctx context.Context, _ *call, in *PathID) (dibs.EndpointView, error) {
			v, err := endpointView(a.svc.Endpoint(ctx, in.ID))
			if err != nil {
				return v, err
			}
			return v, a.svc.DeleteEndpoint(ctx, in.ID)
		})
	change(a, a.endpointOp(http.MethodPost, "/{id}/rotate-secret", "rotate-webhook-secret", "Give an endpoint another secret",
		"The answer has it, this once: a repeat by Idempotency-Key does not have it. The old one signs too for a while, a day if nothing else is said.", `{"keep_old_for":"1h"}`),
		func(ctx context.Context, _ *call, in *PathID, r *dibs.RotateSpec) (dibs.EndpointView, error) {
			return a.svc.RotateSecret(ctx, in.ID, *r)
		})
}

func endpointView(e *dibs.WebhookEndpoint, err error) (dibs.EndpointView, error) {
	if err != nil {
		return dibs.EndpointView{}, err
	}
	return e.View(), nil
}

func (a *api) registerDeliveries() {
	change(a, a.endpointOp(http.MethodPost, "/{id}/test", "test-webhook-endpoint", "Post an event that only tries the endpoint",
		"It is of the type dev.dibs.webhook.test, and is posted whatever types the endpoint wants.", ""),
		func(ctx context.Context, _ *call, in *PathID, _ *noBody) (testView, error) {
			id, err := a.svc.TestEndpoint(ctx, in.ID)
			return testView{id}, err
		})
	list := a.endpointOp(http.MethodGet, "/{id}/deliveries", "list-webhook-deliveries", "List an endpoint's deliveries, newest first",
		"Finished ones are kept for seven days, as are those that wait for an endpoint that is disabled.", "")
	list.strictQuery = true
	register(a, list, func(ctx context.Context, _ *call, in *deliveriesInput) (dibs.ListView[dibs.DeliveryView], error) {
		l, err := a.svc.Deliveries(ctx, in.ID, dibs.DeliveryStatus(in.Status), in.page())
		return listOf(l, (*dibs.WebhookDelivery).View), err
	})
	change(a, a.endpointOp(http.MethodPost, "/{id}/redeliver", "redeliver-webhook", "Deliver again",
		"One event, whatever became of it, or all that were given up. It is the same event, with the same id.", `{"failed":true}`),
		func(ctx context.Context, _ *call, in *PathID, b *redeliverBody) (redeliverView, error) {
			if b.Failed == (b.EventID != "") {
				return redeliverView{}, dibs.Invalid(dibs.Fault{Field: "/event_id", Problem: dibs.Text{
					EN: "is required, or failed must be true, and not both", ZH: "event_id 与 failed 必须且只能提供一个",
				}})
			}
			n, err := a.svc.Redeliver(ctx, in.ID, b.EventID)
			return redeliverView{n}, err
		})
}
