package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
)

// Events reads the feed of events, for admins.
type Events struct{ *caller }

// After returns what happened after a place of the feed, about 500 events at
// most, and the place to go on from; after -1 it returns the place of now.
func (c Events) After(ctx context.Context, after int64) (list []events.Event, next int64, err error) {
	v, err := get[struct {
		Items []events.Event `json:"items"`
		After int64          `json:"after"`
	}](ctx, c.caller, "/v1/events", url.Values{"after": {strconv.FormatInt(after, 10)}}, c.opts.AdminKey)
	return v.Items, v.After, err
}

// Sinks tells how far each taker of the events is.
func (c Events) Sinks(ctx context.Context) (api.ListView[events.SinkView], error) {
	return admin[api.ListView[events.SinkView]](ctx, c.caller, http.MethodGet, "/v1/event-sinks", "", nil)
}
