package ledgertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/webhooks"
)

// endpoint is an endpoint that is not stored yet.
func endpoint(id string) *webhooks.WebhookEndpoint {
	return &webhooks.WebhookEndpoint{
		ID: id, URL: "https://shop.example/" + id, Types: []string{"a", "b"}, Secret: "s1", Version: 1, CreatedAt: start, UpdatedAt: start,
	}
}

// testEndpoints stores, changes and deletes endpoints. Webhooks take the feed
// from the moment of the first endpoint on, and stop with the last: an endpoint
// never gets what happened while there was none. The feed is kept for those who
// take it: without an endpoint nobody does, and it can be trimmed.
func testEndpoints(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	_, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	f.settle(s)
	e := endpoint("one")
	f.must(l.Webhooks.InsertEndpoint(ctx, e))
	sinks := try(l.Events.Sinks(ctx)).must(t)
	same(t, "webhooks take the feed from the first endpoint on", fmt.Sprintf("%s %d", sinks[0].Name, sinks[0].Taken), webhooks.WebhookSink+" 1")
	refuses(t, "an id that is taken", l.Webhooks.InsertEndpoint(ctx, endpoint("one")))
	e.Types, e.OldSecret, e.OldUntil, e.Disabled, e.DisabledReason = nil, "s0", start.Add(time.Hour), true, "410"
	f.must(l.Webhooks.UpdateEndpoint(ctx, e))
	// Its version is the first one, which is not stored any more.
	stale := endpoint("one")
	wants(t, "a change of what changed meanwhile", l.Webhooks.UpdateEndpoint(ctx, stale), dibs.ErrConflict)
	wants(t, "a change of nothing", l.Webhooks.UpdateEndpoint(ctx, endpoint("none")), dibs.ErrNotFound)
	got := try(l.Webhooks.Endpoint(ctx, "one")).must(t)
	// No types are stored as an empty list.
	e.Types = []string{}
	same(t, "the endpoint", *got, *e)
	wants(t, "no endpoint", errOf(l.Webhooks.Endpoint(ctx, "none")), dibs.ErrNotFound)
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint("another")))
	all := try(l.Webhooks.Endpoints(ctx)).must(t)
	same(t, "all", all[0].ID+" "+all[1].ID, "another one")
	f.must(l.Webhooks.QueueDeliveries(ctx, nil, []webhooks.WebhookDelivery{delivery("one", "e1", "s")}))
	// Its delivery goes with it.
	f.must(l.Webhooks.DeleteEndpoint(ctx, "one"))
	wants(t, "deleted twice", l.Webhooks.DeleteEndpoint(ctx, "one"), dibs.ErrNotFound)
	f.must(l.Webhooks.DeleteEndpoint(ctx, "another"))
	same(t, "sinks after the last endpoint", len(try(l.Events.Sinks(ctx)).must(t)), 0)
	wants(t, "a hold of webhooks without endpoints",
		errOf(l.Events.HoldSink(ctx, webhooks.WebhookSink, "late", time.Hour)), events.ErrSinkTaken)
	// Nobody takes the feed now: the new endpoint must not be sent this claim.
	s.grant("u2", 1)
	f.settle(s)
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint("new")))
	st := try(l.Events.HoldSink(ctx, webhooks.WebhookSink, "late", time.Hour)).must(t)
	same(t, "a first endpoint gets what happens from then on", st.Taken, int64(2))
	f.must(errOf(l.Events.TrimFeed(ctx, start, -time.Minute)))
	st = try(l.Events.HoldSink(ctx, webhooks.WebhookSink, "late", time.Hour)).must(t)
	same(t, "the sink of endpoints, not seen before", st.Owner, "late")
}

// testFailing: an endpoint knows since when it fails. After days of failures an
// endpoint is disabled; one success, or an admin who enables it, begins the
// count anew. The time is the ledger's.
func testFailing(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint("one")))
	note := func(good bool) time.Duration {
		t.Helper()
		failing := try(l.Webhooks.NoteAttempts(ctx, "one", good)).must(t)
		return failing
	}
	read := func() *webhooks.WebhookEndpoint {
		t.Helper()
		e := try(l.Webhooks.Endpoint(ctx, "one")).must(t)
		return e
	}
	wants(t, "attempts at nothing", errOf(l.Webhooks.NoteAttempts(ctx, "none", false)), dibs.ErrNotFound)
	same(t, "one good attempt", note(true), 0)
	same(t, "it does not fail", read().FailingSince.IsZero(), true)
	note(false)
	// Editing an endpoint that fails does not begin the count anew.
	since := read().FailingSince
	same(t, "it fails", since.IsZero(), false)
	// The ledger's clock has to move on before the duration is above zero.
	for note(false) == 0 {
		f.must(ctx.Err())
	}
	same(t, "it fails since then", read().FailingSince, since)
	e := read()
	e.Description = "changed"
	f.must(l.Webhooks.UpdateEndpoint(ctx, e))
	same(t, "a change of something else", read().FailingSince, since)
	same(t, "a good attempt", note(true), 0)
	same(t, "it is well again", read().FailingSince.IsZero(), true)
	note(false)
	e = read()
	for _, disabled := range []bool{true, false} {
		e.Disabled = disabled
		f.must(l.Webhooks.UpdateEndpoint(ctx, e))
	}
	same(t, "one that was enabled begins anew", read().FailingSince.IsZero(), true)
}

// testManyDeliveries: old deliveries go, however many, and those that wait only
// when their endpoint is disabled. They go in small steps, so that no
// transaction is long, and one call drops all of them.
func testManyDeliveries(t *testing.T, f *fixture) {
	const many = 1100
	ctx, l := t.Context(), f.ledger()
	for _, id := range []string{"on", "off", "gone"} {
		f.must(l.Webhooks.InsertEndpoint(ctx, endpoint(id)))
	}
	queue := func(endpoint string, n int, status webhooks.DeliveryStatus, at time.Time) {
		t.Helper()
		list := make([]webhooks.WebhookDelivery, n)
		for i := range list {
			list[i] = delivery(endpoint, fmt.Sprintf("%s-%s-%d-%d", endpoint, status, at.Unix(), i), "s")
			list[i].Status, list[i].CreatedAt, list[i].UpdatedAt = status, at, at
		}
		f.must(l.Webhooks.QueueDeliveries(ctx, nil, list))
	}
	old, cut, young := start, start.Add(time.Hour), start.Add(2*time.Hour)
	// 1,100 is more than one step.
	queue("on", many, webhooks.DeliveryDelivered, old)
	queue("on", 3, webhooks.DeliveryFailed, old)
	queue("on", 4, webhooks.DeliveryPending, old)
	queue("on", 5, webhooks.DeliveryDelivered, young)
	queue("off", many, webhooks.DeliveryPending, old)
	queue("off", 2, webhooks.DeliveryPending, young)
	queue("gone", many, webhooks.DeliveryPending, young)
	// Deliveries that wait for a disabled endpoint are dropped when they are old.
	off := try(l.Webhooks.Endpoint(ctx, "off")).must(t)
	off.Disabled = true
	f.must(l.Webhooks.UpdateEndpoint(ctx, off))
	waiting := func(what, endpoint string, most, want int) {
		t.Helper()
		same(t, what, try(l.Webhooks.WaitingDeliveries(ctx, endpoint, time.Time{}, most)).must(t), want)
	}
	waiting("those that wait", "off", 1_000_000, many+2)
	waiting("not all of those that wait", "off", 10, 10)
	waiting("one that is on", "on", 10, 4)
	n := try(l.Webhooks.WaitingDeliveries(ctx, "off", young, 1_000_000)).must(t)
	same(t, "those made since a time", n, 2)
	for _, want := range []int64{many + 3 + many, 0} {
		same(t, "dropped", try(l.Webhooks.TrimDeliveries(ctx, cut)).must(t), want)
	}
	waiting("what waits for one that is on stays", "on", 10, 4)
	waiting("young ones stay", "off", 10, 2)
	rest := try(l.Webhooks.Deliveries(ctx, "on", webhooks.DeliveryDelivered, dibs.Page{})).must(t)
	same(t, "those that are listed", len(rest.Items), 5)
	// Deleting an endpoint deletes its deliveries, however many.
	f.must(l.Webhooks.DeleteEndpoint(ctx, "gone"))
	waiting("those of an endpoint that is gone", "gone", 10, 0)
}

// testEndpointsRace: endpoints come and go, the last one too, while deliveries
// are queued and the sink is held: no transaction waits for another for ever,
// and at the end the sink is there when an endpoint is. Inserting an endpoint
// and holding the sink lock the same rows: in different orders they would block
// each other.
func testEndpointsRace(t *testing.T, f *fixture) {
	const rounds = 15
	ctx, l := t.Context(), f.ledger()
	other := f.open()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range rounds {
			for j := range 2 {
				if err := other.Webhooks.InsertEndpoint(ctx, endpoint(fmt.Sprintf("e%d-%d", i, j))); err != nil {
					t.Errorf("insert: %v", err)
				}
			}
			for j := range 2 {
				if err := other.Webhooks.DeleteEndpoint(ctx, fmt.Sprintf("e%d-%d", i, j)); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		}
	}()
	for i := 0; ; i++ {
		st, err := l.Events.HoldSink(ctx, webhooks.WebhookSink, "a", time.Hour)
		if err == nil {
			all, listErr := l.Webhooks.Endpoints(ctx)
			f.must(listErr)
			// Endpoints may be gone by the time the deliveries are stored: those are left
			// out.
			var list []webhooks.WebhookDelivery
			for j := range all {
				list = append(list, delivery(all[j].ID, fmt.Sprintf("e%d", i), "s"))
			}
			err = l.Webhooks.QueueDeliveries(ctx, &events.Taking{
				Name: webhooks.WebhookSink, Owner: "a", From: st.Taken, To: st.Taken, Events: 1, Lease: time.Hour,
			}, list)
		}
		if err != nil && !errors.Is(err, events.ErrSinkTaken) {
			t.Fatalf("round %d: %v", i, err)
		}
		select {
		case <-done:
			same(t, "sinks without endpoints", len(try(l.Events.Sinks(ctx)).must(t)), 0)
			return
		default:
		}
	}
}

// delivery is a delivery that waits, due at the beginning of the tests.
func delivery(endpoint, event, subject string) webhooks.WebhookDelivery {
	return webhooks.WebhookDelivery{
		Endpoint: endpoint, EventID: event, Type: "a", Subject: subject, Body: []byte(`{"id":"` + event + `"}`),
		Status: webhooks.DeliveryPending, NextAt: start, CreatedAt: start, UpdatedAt: start,
	}
}

// testDeliveries queues deliveries in the transaction that takes the feed. Of
// one subject only the oldest is due, so that a receiver gets events in order.
// An attempt that another process overtook changes nothing, and redelivery
// makes old ones due again.
func testDeliveries(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint("one")))
	f.must(l.Webhooks.InsertEndpoint(ctx, endpoint("two")))
	st := try(l.Events.HoldSink(ctx, webhooks.WebhookSink, "a", time.Hour)).must(t)
	taking := &events.Taking{Name: webhooks.WebhookSink, Owner: "a", From: st.Taken, To: st.Taken + 3, Events: 2, Lease: time.Hour}
	list := []webhooks.WebhookDelivery{
		delivery("one", "e1", "s"), delivery("gone", "e1", "s"), delivery("two", "e1", "s"), delivery("one", "e2", "s"), delivery("one", "e3", "other"),
	}
	f.must(l.Webhooks.QueueDeliveries(ctx, taking, list))
	// The feed was taken by the first call: an event gets one delivery at each
	// endpoint.
	wants(t, "queued twice", l.Webhooks.QueueDeliveries(ctx, taking, list), events.ErrSinkTaken)
	f.must(l.Webhooks.QueueDeliveries(ctx, nil, list[:1]))
	due := func(what, endpoint string, at time.Time, want string) []webhooks.WebhookDelivery {
		t.Helper()
		found := try(l.Webhooks.DueDeliveries(ctx, endpoint, at, 10)).must(t)
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
	// The first attempt fails; e2 is of the same subject and has to wait behind e1.
	late := found[0]
	late.Attempts, late.NextAt, late.Answer, late.Problem, late.UpdatedAt = 1, start.Add(time.Minute), 500, "it said 500", start.Add(time.Second)
	f.must(l.Webhooks.FinishDeliveries(ctx, []webhooks.WebhookDelivery{late}))
	due("an older one of the subject waits", "one", start.Add(time.Second), "e3 ")
	due("it is due again", "one", start.Add(time.Minute), "e1 e2 e3 ")
	overtaken := late
	overtaken.NextAt, overtaken.Problem = start, "it said nothing"
	f.must(l.Webhooks.FinishDeliveries(ctx, []webhooks.WebhookDelivery{overtaken}))
	due("an attempt that was overtaken brings nothing forward", "one", start.Add(time.Second), "e3 ")
	late.Status, late.Attempts = webhooks.DeliveryFailed, 2
	found[1].Status = webhooks.DeliveryDelivered
	f.must(l.Webhooks.FinishDeliveries(ctx, []webhooks.WebhookDelivery{late, found[1]}))
	due("those that are finished", "one", start.Add(time.Minute), "e3 ")
	posted := found[1]
	posted.Status, posted.Attempts = webhooks.DeliveryPending, 9
	f.must(l.Webhooks.FinishDeliveries(ctx, []webhooks.WebhookDelivery{posted}))
	due("what was delivered, and failed for a process that came later", "one", start.Add(time.Minute), "e3 ")

	f.listDeliveries()
	again := func(what, event string, want int64) {
		t.Helper()
		same(t, what, try(l.Webhooks.Redeliver(ctx, "one", event, start.Add(2*time.Minute))).must(t), want)
	}
	again("all that failed", "", 1)
	again("one that was delivered", "e2", 1)
	again("one that is not there", "e9", 0)
	due("again", "one", start.Add(2*time.Minute), "e1 e2 e3 ")
	found[2].Status, found[2].UpdatedAt = webhooks.DeliveryDelivered, start
	f.must(l.Webhooks.FinishDeliveries(ctx, found[2:]))
	same(t, "dropped", try(l.Webhooks.TrimDeliveries(ctx, start.Add(time.Second))).must(t), int64(1))
	same(t, "what is left", len(try(l.Webhooks.Deliveries(ctx, "one", "", dibs.Page{})).must(t).Items), 2)
}

// listDeliveries reads the list of testDeliveries, page by page and by status.
func (f *fixture) listDeliveries() {
	f.t.Helper()
	ctx, l, t := f.t.Context(), f.ledger(), f.t
	pages := ""
	for page := (dibs.Page{Limit: 2}); ; {
		got := try(l.Webhooks.Deliveries(ctx, "one", "", page)).must(f.t)
		for i := range got.Items {
			d := &got.Items[i]
			pages += fmt.Sprintf("%s %s %d %d %s; ", d.EventID, d.Status, d.Attempts, d.Answer, d.Problem)
		}
		if page.Cursor = got.NextCursor; page.Cursor == "" {
			break
		}
	}
	same(t, "the list", pages, "e3 pending 0 0 ; e2 delivered 0 0 ; e1 failed 2 500 it said 500; ")
	failed := try(l.Webhooks.Deliveries(ctx, "one", webhooks.DeliveryFailed, dibs.Page{})).must(f.t)
	same(t, "those that failed", len(failed.Items), 1)
}
