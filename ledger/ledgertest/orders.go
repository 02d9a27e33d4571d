package ledgertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/orders"
)

// testOrders compares every way to look for orders with all claims, filtered
// and sorted here. A ledger answers these by indexes, each by another one;
// filters in combination are where a list leaves orders out or repeats them at
// the border of a page.
func testOrders(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	campaigns := f.orders()
	var all []dibs.Claim
	// The reference: all claims, by another call.
	collect(t, 100, func(page dibs.Page) (dibs.List[dibs.Claim], error) {
		return l.Claims.ClaimList(ctx, dibs.ClaimFilter{}, page)
	},
		func(c dibs.Claim) { all = append(all, c) })
	same(t, "all claims", len(all), 160)
	numbers := func(product string) []uint32 {
		got := try(l.Orders.CampaignsOf(ctx, product)).must(t)
		return got
	}
	same(t, "the product's campaigns", numbers("p"), []uint32{campaigns[2].Number, campaigns[0].Number})
	same(t, "of no product", len(numbers("none")), 0)

	// Each filter alone, in pairs, and with values that nothing matches.
	confirmed := dibs.Confirmed
	middle := all[17].CreatedAt
	for what, q := range map[string]orders.Filter{
		"all":                       {},
		"a user's":                  {UserID: "u1"},
		"paid":                      {Status: &confirmed},
		"a user's paid":             {UserID: "u1", Status: &confirmed},
		"of a payment":              {PaymentRef: "pay7"},
		"of a payment in one":       {PaymentRef: "pay7", Campaigns: []uint32{campaigns[1].Number}},
		"of no payment":             {PaymentRef: "pay-none"},
		"refunds due":               {RefundDue: true},
		"refunds due of a campaign": {RefundDue: true, Campaigns: []uint32{campaigns[1].Number}},
		"a user's refunds due":      {RefundDue: true, UserID: "u2"},
		"no refund due by a code":   {RefundDue: true, Campaigns: []uint32{campaigns[2].Number}, Code: "v-5"},
		"of a campaign":             {Campaigns: []uint32{campaigns[1].Number}},
		"of a product":              {Campaigns: numbers("p")},
		"a user's of a product":     {UserID: "u2", Campaigns: numbers("p")},
		"a product's paid":          {Campaigns: numbers("p"), Status: &confirmed},
		"since":                     {Since: middle},
		"until":                     {Until: middle},
		"between":                   {Since: middle, Until: middle.Add(3 * time.Millisecond)},
		"a user's since":            {UserID: "u0", Since: middle},
		"a campaign's until":        {Campaigns: []uint32{campaigns[0].Number}, Until: middle},
		"of flash sales":            {OrderType: dibs.FlashOrder},
		"regular":                   {OrderType: dibs.RegularOrder},
		"by code":                   {Campaigns: []uint32{campaigns[2].Number}, Code: "v-5"},
		"by a code without a claim": {Campaigns: []uint32{campaigns[2].Number}, Code: "v-55"},
		"by a code that is none":    {Campaigns: []uint32{campaigns[2].Number}, Code: "none"},
		"by a code of any":          {Code: "v-5"},
		"by any code that is none":  {Code: "none"},
		"by a user's code of any":   {Code: "v-5", UserID: "u2"},
		"by a code of any, paid":    {Code: "v-7", Status: &confirmed},
		"by another user's code":    {Campaigns: []uint32{campaigns[2].Number}, Code: "v-5", UserID: "u0"},
		"of no campaign":            {Campaigns: []uint32{}},
		"of a campaign not there":   {Campaigns: []uint32{99}},
		"of a user without orders":  {UserID: "nobody"},
		"everything at once":        {UserID: "u1", Status: &confirmed, OrderType: dibs.FlashOrder, PaymentRef: "pay7", Campaigns: numbers("q"), Since: start},
		"a page and a half at one":  {Since: middle, Until: middle.Add(time.Millisecond)},
	} {
		var got []dibs.Position
		collect(t, 7, func(page dibs.Page) (dibs.List[dibs.Claim], error) { return l.Orders.OrderList(ctx, q, page) },
			func(c dibs.Claim) { got = append(got, c.Position) })
		same(t, what, got, wantedOrders(all, q))
	}
	f.byCode(all, campaigns[2])
	for _, q := range []orders.Filter{{}, {Campaigns: numbers("p")}} {
		badCursor(t, func(page dibs.Page) error { return errOf(l.Orders.OrderList(ctx, q, page)) })
	}
}

// byCode checks the claims of a code: those of a campaign are whole, and those of all campaigns have pages.
func (f *fixture) byCode(all []dibs.Claim, c *dibs.Campaign) {
	f.t.Helper()
	t, ctx, l := f.t, f.t.Context(), f.ledger()
	found := try(l.Orders.OrderList(ctx, orders.Filter{Campaigns: []uint32{c.Number}, Code: "v-3"}, dibs.Page{})).must(t)
	same(t, "the claim by code", lifeOf(&found.Items[0]), lifeOf(&all[slices.IndexFunc(all, func(c dibs.Claim) bool { return slices.Contains(c.Items, "v-3") })]))
	one := 0
	collect(t, 1, func(page dibs.Page) (dibs.List[dibs.Claim], error) {
		return l.Orders.OrderList(ctx, orders.Filter{Code: "v-3"}, page)
	}, func(dibs.Claim) { one++ })
	same(t, "the claims of a code, page by page", one, 2)
}

// orders makes four campaigns of 40 claims each, some of them paid; the last two
// are of items, and have the same ones. Three users have the claims of each; every
// fourth one is paid, and every eighth one after it was cancelled, so that its
// payment is due. All campaigns have the same times, so that many orders share a
// moment.
func (f *fixture) orders() (campaigns []*dibs.Campaign) {
	for i := range 4 {
		c := unpaid(fmt.Sprint("c", i), 1000)
		c.ProductID = []string{"p", "q", "p", ""}[i]
		if i >= 2 {
			f.insert(c, values("v", 60)...)
		} else {
			f.insert(c)
		}
		campaigns = append(campaigns, c)
		_, s := f.load(c, 0)
		for j := range 40 {
			var items []uint32
			if i >= 2 {
				items = []uint32{uint32(j)}
			}
			p := s.grant(fmt.Sprintf("u%d", j%3), 1, items...)
			if j%4 == 3 {
				f.settle(s)
				f.moves(step(c, p, dibs.StepConfirm, paid(fmt.Sprint("pay", j%8), 500)))
			}
			if j%8 == 6 {
				f.settle(s)
				f.moves(step(c, p, dibs.StepCancel, dibs.EventFacts{}))
				f.moves(step(c, p, dibs.StepRefundDue, paid(fmt.Sprint("late", j), 500)))
			}
		}
		f.settle(s)
	}
	return campaigns
}

// wantedOrders filters and sorts claims as a list of orders should be. Newest
// first: by time for all orders and those of a user, else by place.
func wantedOrders(all []dibs.Claim, q orders.Filter) []dibs.Position {
	list := slices.DeleteFunc(slices.Clone(all), func(c dibs.Claim) bool {
		return q.UserID != "" && c.UserID != q.UserID || q.Status != nil && c.Status != *q.Status ||
			q.OrderType != 0 && c.OrderType != q.OrderType || q.PaymentRef != "" && (c.Payment == nil || c.Payment.Ref != q.PaymentRef) ||
			q.RefundDue && (c.Payment == nil || !c.Payment.Due) ||
			q.Campaigns != nil && !slices.Contains(q.Campaigns, c.Position.Campaign) || q.Code != "" && !slices.Contains(c.Items, q.Code) ||
			!q.Since.IsZero() && c.CreatedAt.Before(q.Since) || !q.Until.IsZero() && !c.CreatedAt.Before(q.Until)
	})
	byPlace := q.PaymentRef != "" || q.RefundDue || q.Code != "" || q.UserID == "" && q.Campaigns != nil
	slices.SortFunc(list, func(a, b dibs.Claim) int {
		if !byPlace && !a.CreatedAt.Equal(b.CreatedAt) {
			return b.CreatedAt.Compare(a.CreatedAt)
		}
		if a.Position.Campaign != b.Position.Campaign {
			return int(b.Position.Campaign) - int(a.Position.Campaign)
		}
		if a.Position.Before(b.Position.Cursor) {
			return 1
		}
		return -1
	})
	var got []dibs.Position
	for _, c := range list {
		got = append(got, c.Position)
	}
	return got
}
