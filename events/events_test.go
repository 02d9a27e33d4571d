package events_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// sold returns a node that has sold all three units of the campaign "sale", and the row of
// the feed before that.
func sold(t *testing.T) (r *testnode.Rig, before int64) {
	t.Helper()
	r = testnode.New(t, node.ServiceConfig{})
	_, before, err := r.Node.Events.Tail(t.Context(), -1, 10)
	if err != nil {
		t.Fatal(err)
	}
	sell(r)
	return r, before
}

func sell(r *testnode.Rig) {
	r.Helper()
	r.Publish(r.Sale("sale", 3))
	r.Sell("sale", 3)
	if err := r.Settle("sale"); err != nil {
		r.Fatal(err)
	}
}

// idsOf are the ids of events, which tell them apart.
func idsOf(list []events.Event) []string {
	var ids []string
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// TestAfter reads what happened at once, and the same a row at a time.
func TestAfter(t *testing.T) {
	t.Parallel()
	r, before := sold(t)
	all, last, err := r.Node.Events.After(t.Context(), before, 10_000)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	count := map[string]int{}
	for i := range all {
		count[strings.TrimPrefix(all[i].Type, events.EventTypePrefix)]++
	}
	if all[0].Type != events.EventTypePrefix+"campaign.published" || count["claim.granted"] != 3 || count["campaign.sold_out"] != 1 {
		t.Errorf("the events are %v, the first %s", count, all[0].Type)
	}
	var paged []string
	at := before
	for {
		page, next, err := r.Node.Events.After(t.Context(), at, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		if next != at+1 {
			t.Errorf("a page goes from row %d to %d", at, next)
		}
		paged, at = append(paged, idsOf(page)...), next
	}
	if at != last || !slices.Equal(paged, idsOf(all)) {
		t.Errorf("row by row up to %d: %v, want up to %d: %v", at, paged, last, idsOf(all))
	}
}

// TestTail begins at the end, and goes on from there as After does.
func TestTail(t *testing.T) {
	t.Parallel()
	r, _ := sold(t)
	list, head, err := r.Node.Events.Tail(t.Context(), -1, 10_000)
	if err != nil || len(list) != 0 {
		t.Fatalf("the tail begins with %d events, %v", len(list), err)
	}
	if _, err := r.Node.Campaigns.End(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	list, next, err := r.Node.Events.Tail(t.Context(), head, 10_000)
	if err != nil || len(list) != 1 || next != head+1 || list[0].Type != events.EventTypePrefix+"campaign.ended" {
		t.Errorf("after row %d: %v up to row %d, %v", head, idsOf(list), next, err)
	}
}

// lone is a ledger whose feed tells of one claim.
type lone struct {
	events.Ledger
	claim dibs.Claim
}

func (l *lone) News(_ context.Context, after int64, _ int) ([]events.News, int64, error) {
	return []events.News{{Row: after + 1, Claim: &l.claim}}, after + 1, nil
}

// TestAfterOfAnUnknownCampaign: a claim without its campaign is an error, and no event of it
// is passed over.
func TestAfterOfAnUnknownCampaign(t *testing.T) {
	t.Parallel()
	r := testnode.New(t, node.ServiceConfig{})
	l := &lone{claim: dibs.Claim{Position: dibs.Position{ShardID: dibs.ShardID{Campaign: 4711}}}}
	e := events.New(r.Node.Live, r.Node.Claims, l, nil, r.Now)
	if list, last, err := e.After(t.Context(), 7, 10); !errors.Is(err, dibs.ErrNotFound) || len(list) != 0 || last != 7 {
		t.Errorf("%d events up to row %d, %v", len(list), last, err)
	}
}

// takes is the one sink of a node, as Events shows it.
func takes(r *testnode.Rig) events.SinkView {
	r.Helper()
	list, err := r.Node.Events.Sinks(r.Context())
	if err != nil || len(list) != 1 {
		r.Fatalf("the sinks are %+v, %v", list, err)
	}
	return list[0]
}

// warning is what Health says of the sinks.
func warning(r *testnode.Rig) string {
	r.Helper()
	d, ok := r.Node.Events.Health(r.Context())
	if !ok || !d.OK {
		r.Fatalf("sinks make a node unready: %+v, %t", d, ok)
	}
	return d.Warning
}

// TestSinks follows a sink that is new, falls behind, fails and catches up.
func TestSinks(t *testing.T) {
	t.Parallel()
	r := testnode.New(t, node.ServiceConfig{})
	if d, ok := r.Node.Events.Health(t.Context()); ok {
		t.Errorf("a node without sinks says of them %+v", d)
	}
	l := r.Node.Ledger.Parts().Events
	st, err := l.HoldSink(t.Context(), "kafka://k/t", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if v := takes(r); !v.OK || v.Behind != 0 || v.LagMS != 0 || v.Owner != "me" || warning(r) != "" {
		t.Errorf("a new sink is %+v: %s", v, warning(r))
	}

	sell(r)
	_, head, err := r.Node.Events.Tail(t.Context(), -1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if v := takes(r); v.Behind != head-st.Taken || v.Behind == 0 || !v.OK || warning(r) != "" {
		t.Errorf("a sink before %d rows is %+v: %s", head-st.Taken, v, warning(r))
	}
	// What waits for two minutes is told of.
	r.Pass(2 * time.Minute)
	if v := takes(r); v.LagMS < (2*time.Minute).Milliseconds() || !strings.HasPrefix(warning(r), "1 of 1 sinks") {
		t.Errorf("a sink that is late is %+v: %s", v, warning(r))
	}

	taking := events.Taking{Name: st.Name, Owner: "me", From: st.Taken, To: head, Events: 5, Lease: time.Hour}
	if err := l.TakeNews(t.Context(), taking); err != nil {
		t.Fatal(err)
	}
	if v := takes(r); v.Behind != 0 || v.LagMS != 0 || v.Published != 5 || warning(r) != "" {
		t.Errorf("a sink that has taken all is %+v: %s", v, warning(r))
	}
	if err := l.SinkFailed(t.Context(), st.Name, "me", "refused"); err != nil {
		t.Fatal(err)
	}
	if v := takes(r); v.OK || v.Failures != 1 || v.Problem != "refused" || !strings.HasPrefix(warning(r), "1 of 1 sinks") {
		t.Errorf("a sink that fails is %+v: %s", v, warning(r))
	}
	r.Node.Events.See(t.Context())
	if seen := r.Node.Events.SinksSeen(); len(seen) != 1 || seen[0].Failures != 1 {
		t.Errorf("See has noted %+v", seen)
	}
}
