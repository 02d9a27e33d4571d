package ledgertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/orders"
)

// testNotes: what callers and administrators write about claims comes back wherever the
// claim does. A reference is settled with its claim. A text that no request can have
// given is damage of the journal, and costs the claim nothing.
func testNotes(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(unpaid("c", 100))
	early, late, plain := s.referred("u1", 1, "https://shop.example/谢谢/1"), s.referred("u2", 1, "order 2"), s.grant("u1", 1)
	long, damaged := s.referred("u4", 1, strings.Repeat("😀", 256)), s.referred("u3", 1, "\xff")
	s.referred("u3", 1, "a\x00b")
	s.referred("u3", 1, strings.Repeat("a", 257))
	f.settle(s)
	found := try(l.Claims.References(ctx, []dibs.Position{late, early, plain, long, damaged})).must(t)
	same(t, "the references", found, map[dibs.Position]string{
		early: "https://shop.example/谢谢/1", late: "order 2", long: strings.Repeat("😀", 256),
	})

	at := start.Add(time.Hour)
	f.must(l.Orders.Comment(ctx, early, "call first", start.Add(time.Minute)))
	f.must(l.Orders.Comment(ctx, early, "called", at))
	wants(t, "a comment on no claim", l.Orders.Comment(ctx, dibs.Position{ShardID: early.ShardID, Cursor: dibs.Cursor{Epoch: 1, Seq: 99}}, "x", at), dibs.ErrNotFound)
	one := try(l.Claims.Claim(ctx, early)).must(t)
	same(t, "the claim", []any{one.Reference, one.Comment, one.UpdatedAt}, []any{"https://shop.example/谢谢/1", "called", at})
	f.moves(step(c, early, dibs.StepConfirm, paid("pay", 500)))
	list := try(l.Claims.ClaimList(ctx, dibs.ClaimFilter{Campaign: c.Number}, dibs.Page{})).must(t)
	var got []string
	for _, claim := range list.Items {
		got = append(got, claim.Reference+"|"+claim.Comment)
	}
	same(t, "the list", got, []string{"https://shop.example/谢谢/1|called", "order 2|", "|", strings.Repeat("😀", 256) + "|", "|", "|", "|"})
	f.must(l.Orders.Comment(ctx, early, "", at))
	same(t, "a comment that was taken away", try(l.Claims.Claim(ctx, early)).must(t).Comment, "")

	for what, q := range map[string]orders.Filter{
		"by reference": {Reference: "order 2"}, "of a user": {Reference: "order 2", UserID: "u2"},
		"of a campaign": {Reference: "order 2", Campaigns: []uint32{c.Number}},
	} {
		list := try(l.Orders.OrderList(ctx, q, dibs.Page{})).must(t)
		if len(list.Items) != 1 || list.Items[0].Position != late {
			t.Errorf("%s: %+v", what, list.Items)
		}
	}
	for what, q := range map[string]orders.Filter{
		"another user's": {Reference: "order 2", UserID: "u1"}, "no reference": {Reference: "none"},
		"of an unpaid one": {Reference: "order 2", PaymentRef: "pay"},
	} {
		same(t, what, len(try(l.Orders.OrderList(ctx, q, dibs.Page{})).must(t).Items), 0)
	}
	news, _, err := l.Events.News(ctx, 0, 1000)
	f.must(err)
	told := map[string]int{}
	for _, n := range news {
		if n.Claim != nil {
			told[fmt.Sprint(n.N, " ", n.Claim.Reference, n.Claim.Comment)]++
		}
	}
	same(t, "the events", told, map[string]int{
		"0 https://shop.example/谢谢/1": 1, "0 order 2": 1, "0 " + strings.Repeat("😀", 256): 1, "0 ": 4, "1 https://shop.example/谢谢/1": 1,
	})
	f.clean(c)
}

// testReferenceAside: a claim in quarantine has its reference, and keeps it when it is
// settled.
func testReferenceAside(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 1))
	bad := s.referred("u1", 2, "basket-7")
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	found := try(l.Claims.References(ctx, []dibs.Position{bad})).must(t)
	same(t, "the reference in quarantine", found[bad], "basket-7")
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 4}))
	f.must(l.Audit.Readmit(ctx, c, bad))
	same(t, "the claim's reference", try(l.Claims.Claim(ctx, bad)).must(t).Reference, "basket-7")
}

// testOffSale: a product that is off sale takes no order; repeats and late payments of
// earlier orders go on.
func testOffSale(t *testing.T, f *fixture) {
	p := f.product(10, time.Minute)
	first := f.order("u1", 1, 7)
	same(t, "on sale", first.Outcome, dibs.Granted)
	p.Status = dibs.OffSale
	f.must(f.ledger().Campaigns.UpdateProduct(t.Context(), p))
	same(t, "the status", try(f.ledger().Campaigns.Product(t.Context(), "p")).must(t).Status, dibs.OffSale)
	same(t, "off sale", f.order("u2", 1, 0).Outcome, dibs.Paused)
	same(t, "a repeat", f.order("u1", 1, 7).Replayed, true)
	again := try(f.ledger().Orders.Order(t.Context(), orders.Order{
		ProductID: "p", UserID: "u1", Quantity: 1, Key: 9, At: start, Late: true, Amount: first.Claim.Amount, Reference: "r",
	})).must(t)
	same(t, "a late payment", again.Outcome, dibs.Granted)
	claim := try(f.ledger().Claims.Claim(t.Context(), again.Claim.Position)).must(t)
	same(t, "its reference", claim.Reference, "r")
	p.Status = dibs.OnSale
	f.must(f.ledger().Campaigns.UpdateProduct(t.Context(), p))
	same(t, "on sale again", f.order("u2", 1, 0).Outcome, dibs.Granted)
	f.clean(first.Campaign)
}

// testOfProduct: campaigns are listed by product, page by page.
func testOfProduct(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	for i := range 5 {
		c := campaign(fmt.Sprint("c", i), 5)
		c.ProductID = []string{"p", "q"}[i%2]
		if i == 4 {
			c.State, c.EndedAt = dibs.EndedState, start.Add(time.Minute)
		}
		f.insert(c)
		if i == 4 {
			f.must(l.Campaigns.UpdateCampaign(ctx, c))
		}
	}
	list := func(product string, states ...dibs.State) (ids []string) {
		collect(t, 1, func(page dibs.Page) (dibs.List[dibs.Campaign], error) {
			return l.Campaigns.Campaigns(ctx, states, product, page)
		},
			func(c dibs.Campaign) { ids = append(ids, c.ID) })
		return ids
	}
	same(t, "of a product", list("p"), []string{"c4", "c2", "c0"})
	same(t, "of a product and a state", list("p", dibs.Published), []string{"c2", "c0"})
	same(t, "of no product", len(list("none")), 0)
	same(t, "the end", try(l.Campaigns.Campaign(ctx, "c4")).must(t).EndedAt, start.Add(time.Minute))
}

// testMerchantSizes counts merchants by their followers, for the threshold of
// announcements.
func testMerchantSizes(t *testing.T, f *fixture) {
	sizes := func() (all [][2]int64) {
		f.must(f.ledger().Announce.MerchantSizes(t.Context(), func(followers, merchants int64) { all = append(all, [2]int64{followers, merchants}) }))
		return all
	}
	same(t, "no merchant", len(sizes()), 0)
	for i, n := range []int{3, 1, 3, 2} {
		var list []gate.Follower
		for j := range n {
			list = append(list, gate.Follower{User: fmt.Sprint("u", j), Since: start})
		}
		f.must(errOf(f.ledger().Audiences.Follow(t.Context(), fmt.Sprint("m", i), list, true)))
	}
	same(t, "by size", sizes(), [][2]int64{{1, 1}, {2, 1}, {3, 2}})
}
