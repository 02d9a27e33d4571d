package ledgertest

import (
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger"
)

// sharing stores a draft of a product, whose limit is n, and publishes it.
func (f *fixture) sharing(id, product string, n int64, change func(*dibs.Campaign)) (*dibs.Campaign, error) {
	f.t.Helper()
	c := campaign(id, 10)
	c.State, c.ProductID, c.LimitPerProduct = dibs.Draft, product, n
	if change != nil {
		change(c)
	}
	f.insert(c)
	c.State = dibs.Published
	return c, f.ledger().Campaigns.UpdateCampaign(f.t.Context(), c)
}

// testSharing: campaigns that share the limit of a product have the same shards, and one
// limit while they go on. A load names all of them that were ever published, and the
// audit of each counts over all.
func testSharing(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	for _, id := range []string{"phone", "mug"} {
		f.must(l.Campaigns.InsertProduct(ctx, &dibs.Product{ID: id, Name: id, Version: 1, CreatedAt: start, UpdatedAt: start}))
	}
	published := func(id, product string, n int64, change func(*dibs.Campaign)) *dibs.Campaign {
		t.Helper()
		c := try(f.sharing(id, product, n, change)).must(t)
		return c
	}
	refused := func(what, field string, n int64, change func(*dibs.Campaign)) {
		t.Helper()
		c, err := f.sharing(what, "phone", n, change)
		wants(t, what, err, dibs.Invalid())
		if e := (*dibs.Error)(nil); !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Field != field {
			t.Errorf("%s: the refusal is %v, want one of %s", what, err, field)
		}
		same(t, what+": the state", try(l.Live.Campaign(ctx, what)).must(t).State, dibs.Draft)
		same(t, what+": the version", c.Version, int64(1))
	}
	a := published("a", "phone", 2, nil)
	same(t, "the limit per product", try(l.Live.Campaign(ctx, "a")).must(t).LimitPerProduct, int64(2))
	refused("other shards", "/shards", 2, func(c *dibs.Campaign) { c.Shards = 2 })
	refused("another limit", "/limit_per_product", 3, nil)
	later := func(c *dibs.Campaign) {
		c.StartsAt, c.EndsAt, c.UpdatedAt, c.PayWithin = a.EndsAt, a.EndsAt.Add(time.Hour), a.EndsAt, time.Hour
	}
	b := published("another limit once it is over", "phone", 3, later)
	published("another product", "mug", 5, func(c *dibs.Campaign) { c.Shards = 2 })
	published("no limit", "phone", 0, func(c *dibs.Campaign) { c.Shards = 2 })

	load, s := f.load(a, 0)
	same(t, "who shares", load.Sharing, []uint32{b.Number})
	load, second := f.load(b, 0)
	same(t, "who shares", load.Sharing, []uint32{a.Number})
	s.grant("ann", 2)
	first := second.grant("bob", 3)
	second.grant("ann", 1)
	f.settle(s, second)
	f.clean(a)
	f.clean(b)
	second.grant("ann", 1)
	second.grant("bob", 1)
	f.settle(second)
	for _, c := range []*dibs.Campaign{a, b} {
		found := try(l.Audit.Audit(ctx, c)).must(t)
		same(t, "who holds too much", found.OverLimit, []string{"ann (product phone)", "bob (product phone)"})
	}
	// A claim that is released counts no more.
	f.moves(step(b, first, dibs.StepCancel, dibs.EventFacts{}))
	found := try(l.Audit.Audit(ctx, a)).must(t)
	same(t, "who holds too much after a release", found.OverLimit, []string{"ann (product phone)"})
}

// testSharingRace publishes two campaigns of other shards from two nodes at once: one of
// them is refused.
func testSharingRace(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.must(l.Campaigns.InsertProduct(ctx, &dibs.Product{ID: "phone", Name: "phone", Version: 1, CreatedAt: start, UpdatedAt: start}))
	ledgers := []ledger.Ledger{l, f.open()}
	results := make(chan error, len(ledgers))
	for i, node := range ledgers {
		c := campaign(values("c", 2)[i], 10)
		c.State, c.ProductID, c.LimitPerProduct, c.Shards = dibs.Draft, "phone", 1, i+1
		f.insert(c)
		c.State = dibs.Published
		go func() { results <- node.Campaigns.UpdateCampaign(ctx, c) }()
	}
	one, two := <-results, <-results
	if one != nil {
		one, two = two, one
	}
	f.must(one)
	wants(t, "the second one", two, dibs.Invalid())
}

// testSharingErasure: a campaign that is over keeps a user while another one goes on that
// shares its limit: the engine counts by who the user was.
func testSharingErasure(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	f.must(l.Campaigns.InsertProduct(ctx, &dibs.Product{ID: "phone", Name: "phone", Version: 1, CreatedAt: start, UpdatedAt: start}))
	a := try(f.sharing("a", "phone", 2, nil)).must(t)
	b := try(f.sharing("b", "phone", 2, func(c *dibs.Campaign) { c.EndsAt = c.EndsAt.Add(time.Hour) })).must(t)
	_, s := f.load(a, 0)
	at := s.grant("ann", 1)
	f.settle(s)
	e := f.erasure("ann", false)
	for _, round := range []struct {
		what string
		now  time.Time
		want string
	}{
		{"while the other one goes on", a.EndsAt.Add(time.Minute), "ann"},
		{"once both are over", b.EndsAt.Add(time.Minute), e.Pseudonym},
	} {
		e = try(l.Erasure.ErasureByID(ctx, e.ID)).must(t)
		f.round(e, nil, round.now)
		same(t, "the user of the claim "+round.what, try(l.Claims.Claim(ctx, at)).must(t).UserID, round.want)
	}
}
