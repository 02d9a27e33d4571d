package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

func endpoint(id string) *dibs.WebhookEndpoint {
	return &dibs.WebhookEndpoint{
		ID: id, URL: "https://shop.example/" + id, Types: []string{"a", "b"}, Secret: "s1", Version: 1, CreatedAt: start, UpdatedAt: start,
	}
}

func testEndpoints(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	_, s := f.load(c, 0)
	s.grant("u1", 1)
	f.settle(s)
	e := endpoint("one")
	f.must(l.InsertEndpoint(ctx, e))
	sinks, err := l.Sinks(ctx)
	f.must(err)
	same(t, "webhooks take the feed from the first endpoint on", fmt.Sprintf("%s %d", sinks[0].Name, sinks[0].Taken), dibs.WebhookSink+" 1")
	refuses(t, "an id that is taken", l.InsertEndpoint(ctx, endpoint("one")))
	e.Types, e.OldSecret, e.OldUntil, e.Disabled, e.DisabledReason = nil, "s0", start.Add(time.Hour), true, "410"
	f.must(l.UpdateEndpoint(ctx, e))
	stale := endpoint("one")
	wants(t, "a change of what changed meanwhile", l.UpdateEndpoint(ctx, stale), dibs.ErrConflict)
	wants(t, "a change of nothing", l.UpdateEndpoint(ctx, endpoint("none")), dibs.ErrNotFound)
	got, err := l.Endpoint(ctx, "one")
	f.must(err)
	e.Types = []string{}
	same(t, "the endpoint", *got, *e)
	_, err = l.Endpoint(ctx, "none")
	wants(t, "no endpoint", err, dibs.ErrNotFound)
	f.must(l.InsertEndpoint(ctx, endpoint("another")))
	all, err := l.Endpoints(ctx)
	f.must(err)
	same(t, "all", all[0].ID+" "+all[1].ID, "another one")
	f.must(l.QueueDeliveries(ctx, nil, []dibs.WebhookDelivery{delivery("one", "e1", "s")}))
	f.must(l.DeleteEndpoint(ctx, "one"))
	wants(t, "deleted twice", l.DeleteEndpoint(ctx, "one"), dibs.ErrNotFound)
	f.must(l.DeleteEndpoint(ctx, "another"))
	sinks, err = l.Sinks(ctx)
	f.must(err)
	same(t, "sinks after the last endpoint", len(sinks), 0)
}

func delivery(endpoint, event, subject string) dibs.WebhookDelivery {
	return dibs.WebhookDelivery{
		Endpoint: endpoint, EventID: event, Type: "a", Subject: subject, Body: []byte(`{"id":"` + event + `"}`),
		Status: dibs.DeliveryPending, NextAt: start, CreatedAt: start, UpdatedAt: start,
	}
}

func testDeliveries(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.must(l.InsertEndpoint(ctx, endpoint("one")))
	f.must(l.InsertEndpoint(ctx, endpoint("two")))
	st, err := l.HoldSink(ctx, dibs.WebhookSink, "a", start, start.Add(time.Minute))
	f.must(err)
	taking := &dibs.Taking{Name: dibs.WebhookSink, Owner: "a", From: st.Taken, To: st.Taken + 3, Events: 2, At: start, Until: start.Add(time.Minute)}
	list := []dibs.WebhookDelivery{
		delivery("one", "e1", "s"), delivery("gone", "e1", "s"), delivery("two", "e1", "s"), delivery("one", "e2", "s"), delivery("one", "e3", "other"),
	}
	f.must(l.QueueDeliveries(ctx, taking, list))
	wants(t, "queued twice", l.QueueDeliveries(ctx, taking, list), dibs.ErrSinkTaken)
	f.must(l.QueueDeliveries(ctx, nil, list[:1]))
	due := func(what, endpoint string, at time.Time, want string) []dibs.WebhookDelivery {
		t.Helper()
		found, err := l.DueDeliveries(ctx, endpoint, at, 10)
		f.must(err)
		s := ""
		for i := range found {
			s += found[i].EventID + " "
		}
		same(t, what, s, want)
		return found
	}
	due("before their time", "one", start.Add(-time.Second), "")
	found := due("in order", "one", start, "e1 e2 e3 ")
	same(t, "what is posted", string(found[0].Body), `{"id":"e1"}`)
	due("of another endpoint", "two", start, "e1 ")
	late := found[0]
	late.Attempts, late.NextAt, late.Answer, late.Problem, late.UpdatedAt = 1, start.Add(time.Minute), 500, "it said 500", start.Add(time.Second)
	f.must(l.FinishDeliveries(ctx, []dibs.WebhookDelivery{late}))
	due("an older one of the subject waits", "one", start.Add(time.Second), "e3 ")
	due("it is due again", "one", start.Add(time.Minute), "e1 e2 e3 ")
	late.Status = dibs.DeliveryFailed
	found[1].Status = dibs.DeliveryDelivered
	f.must(l.FinishDeliveries(ctx, []dibs.WebhookDelivery{late, found[1]}))
	due("those that are finished", "one", start.Add(time.Minute), "e3 ")

	f.listDeliveries()
	again := func(what, event string, want int64) {
		t.Helper()
		n, err := l.Redeliver(ctx, "one", event, start.Add(2*time.Minute))
		f.must(err)
		same(t, what, n, want)
	}
	again("all that failed", "", 1)
	again("one that was delivered", "e2", 1)
	again("one that is not there", "e9", 0)
	due("again", "one", start.Add(2*time.Minute), "e1 e2 e3 ")
	found[2].Status, found[2].UpdatedAt = dibs.DeliveryDelivered, start
	f.must(l.FinishDeliveries(ctx, found[2:]))
	f.must(l.TrimDeliveries(ctx, start.Add(time.Second)))
	rest, err := l.Deliveries(ctx, "one", "", dibs.Page{})
	f.must(err)
	same(t, "what is left", len(rest.Items), 2)
}

// listDeliveries reads the list of testDeliveries, page by page and by status.
func (f *fixture) listDeliveries() {
	f.t.Helper()
	ctx, l, t := f.t.Context(), f.ledger(), f.t
	pages := ""
	for page := (dibs.Page{Limit: 2}); ; {
		got, err := l.Deliveries(ctx, "one", "", page)
		f.must(err)
		for i := range got.Items {
			d := &got.Items[i]
			pages += fmt.Sprintf("%s %s %d %d %s; ", d.EventID, d.Status, d.Attempts, d.Answer, d.Problem)
		}
		if page.Cursor = got.NextCursor; page.Cursor == "" {
			break
		}
	}
	same(t, "the list", pages, "e3 pending 0 0 ; e2 delivered 0 0 ; e1 failed 1 500 it said 500; ")
	failed, err := l.Deliveries(ctx, "one", dibs.DeliveryFailed, dibs.Page{})
	f.must(err)
	same(t, "those that failed", len(failed.Items), 1)
}
