package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
)

// Events is what the handlers of the feed of events call.
type Events interface {
	// Tail returns about max events after a row of the feed, and the last row that
	// it read. After row -1 it returns no events, and the newest row.
	Tail(ctx context.Context, after int64, max int) (events []events.Event, last int64, err error)
	// Sinks shows how far each sink of the events is, on any node.
	Sinks(ctx context.Context) ([]events.SinkView, error)
}

// eventsInput says where events begin.
type eventsInput struct {
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"after of the answer before; absent: from now on"`
}

// eventsView is a part of the feed.
type eventsView struct {
	Items []events.Event `json:"items"`
	// After is where to go on.
	After int64 `json:"after"`
}

// maxEvents is about how many events one answer has.
// A row of the feed has up to 512 events, and a row is never divided.
const maxEvents = 512

// registerEvents adds the routes that show events, and how far the sinks that take them are.
func registerEvents(a *routes, feed Events) {
	register(a, operation{
		method: http.MethodGet, path: "/v1/events", id: "list-events", personal: true, tag: tagEvents, access: adminOnly, strictQuery: true,
		summary: "Follow what happens", description: "Events as sinks get them, of the last day at least: ask again with `after` of the answer.",
	}, func(ctx context.Context, _ *call, in *eventsInput) (eventsView, error) {
		items, after, err := feed.Tail(ctx, in.After, maxEvents)
		if items == nil {
			items = []events.Event{}
		}
		return eventsView{items, after}, err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/event-sinks", id: "list-event-sinks", tag: tagEvents, access: adminOnly,
		summary: "Show how far each sink of the events is",
	}, func(ctx context.Context, _ *call, _ *struct{}) (api.ListView[events.SinkView], error) {
		sinks, err := feed.Sinks(ctx)
		return listOf(itself[events.SinkView])(dibs.List[events.SinkView]{Items: sinks}, err)
	})
}
