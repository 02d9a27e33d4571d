package ledgertest

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
)

// testLowStock: the ledger notes when the stock comes down to low_stock, and
// when it is above it again, whatever moves it. Admins are warned once when the
// stock comes down, so the time must stay while it is low, and every way to
// move stock has to be counted: grants, releases, restocks and a changed
// threshold.
func testLowStock(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := unpaid("c", 10)
	c.LowStock, c.LimitPerUser = 4, 10
	f.insert(c)
	since := func(what string, low bool) time.Time {
		t.Helper()
		got := try(l.Live.Campaign(ctx, "c")).must(t)
		same(t, what+": low", !got.LowSince.IsZero(), low)
		same(t, what+": low_stock", got.LowStock, c.LowStock)
		return got.LowSince
	}
	_, s := f.load(c, 0)
	first := s.grant("u1", 5)
	f.settle(s)
	since("5 left", false)
	second := s.grant("u2", 1)
	f.settle(s)
	began := since("4 left", true)
	s.grant("u3", 1)
	f.settle(s)
	same(t, "low since", since("3 left", true), began)
	f.moves(step(c, second, dibs.StepCancel, dibs.EventFacts{}))
	since("4 left again", true)
	f.moves(step(c, first, dibs.StepCancel, dibs.EventFacts{}))
	since("9 left", false)

	now := try(l.Live.Campaign(ctx, "c")).must(t)
	now.LowStock = 9
	f.must(l.Campaigns.UpdateCampaign(ctx, now))
	c.LowStock = 9
	since("a threshold above the stock", true)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: dibs.ShardID{Campaign: c.Number}, Ref: "r", Delta: 1}))
	since("10 left", false)
	now.LowStock = 0
	f.must(l.Campaigns.UpdateCampaign(ctx, now))
	c.LowStock = 0
	s.grant("u4", 9)
	f.settle(s)
	since("1 left, and no warning is asked for", false)
	f.clean(c)

	draft := campaign("draft", 1)
	draft.State, draft.LowStock = dibs.Draft, 5
	f.insert(draft)
	got := try(l.Live.Campaign(ctx, "draft")).must(t)
	same(t, "a draft is not low", got.LowSince.IsZero(), true)
	got.State = dibs.Published
	f.must(l.Campaigns.UpdateCampaign(ctx, got))
	same(t, "it is once it is published", try(l.Live.Campaign(ctx, "draft")).must(t).LowSince.IsZero(), false)
}
