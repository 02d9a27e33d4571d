package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// testClaims finds a claim by its place, and by campaign, user and key, of
// which none may differ. Key 0 stands for no key, and finds nothing. A lost yes
// is found by the user's key when the engine has forgotten the campaign; a
// look-up that leaves one of the three out shows a stranger's claim.
func testClaims(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	d := f.insert(campaign("d", 10))
	p := s.grant("u1", 1)
	// A second claim of the same user, without a key.
	s.next(dibs.Entry{Kind: dibs.EntryGrant, UserID: "u1", Quantity: 1})
	f.settle(s)
	key := uint64(1)<<63 | uint64(p.Seq)
	same(t, "the claim's place", try(l.Claims.ClaimByKey(ctx, c.Number, "u1", key)).must(t).Position, p)
	for what, find := range map[string]func() (*dibs.Claim, error){
		"another user":     func() (*dibs.Claim, error) { return l.Claims.ClaimByKey(ctx, c.Number, "u2", key) },
		"another campaign": func() (*dibs.Claim, error) { return l.Claims.ClaimByKey(ctx, d.Number, "u1", key) },
		"another key":      func() (*dibs.Claim, error) { return l.Claims.ClaimByKey(ctx, c.Number, "u1", key+7) },
		"no key":           func() (*dibs.Claim, error) { return l.Claims.ClaimByKey(ctx, c.Number, "u1", 0) },
		"another place": func() (*dibs.Claim, error) {
			q := p
			q.Seq += 100
			return l.Claims.Claim(ctx, q)
		},
	} {
		wants(t, what, errOf(find()), dibs.ErrNotFound)
	}
}

// testClaimLists lists claims in the order of their places, or of one user
// newest first, with every filter, page by page. Two campaigns of 50 claims,
// one of units and one of items, are interleaved in time.
func testClaimLists(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 1000))
	d := campaign("d", 0)
	d.PayWithin = time.Minute
	f.insert(d, values("v", 50)...)
	_, s := f.load(c, 0)
	_, r := f.load(d, 0)
	for i := range 50 {
		s.grant(fmt.Sprintf("u%d", i%3), 1)
		r.grant(fmt.Sprintf("u%d", i%2), 1, uint32(i))
	}
	// The first campaign has no time to pay: its claims are confirmed, the others
	// pending.
	f.settle(s, r)
	list := func(filter dibs.ClaimFilter) (got []dibs.Claim) {
		t.Helper()
		collect(t, 7, func(page dibs.Page) (dibs.List[dibs.Claim], error) { return l.Claims.ClaimList(ctx, filter, page) },
			func(c dibs.Claim) { got = append(got, c) })
		return got
	}
	all := list(dibs.ClaimFilter{})
	same(t, "all claims", len(all), 100)
	for i := 1; i < len(all); i++ {
		a, b := all[i-1].Position, all[i].Position
		if a.Campaign > b.Campaign || a.Campaign == b.Campaign && !a.Before(b.Cursor) {
			t.Errorf("claim %s comes before %s", a, b)
		}
	}
	same(t, "an item of the last claim", all[99].Items, []string{"v-49"})
	same(t, "claims of a campaign", len(list(dibs.ClaimFilter{Campaign: d.Number})), 50)

	mine := list(dibs.ClaimFilter{UserID: "u1"})
	same(t, "claims of a user", len(mine), 17+25)
	for i := 1; i < len(mine); i++ {
		if mine[i].UserID != "u1" || mine[i-1].CreatedAt.Before(mine[i].CreatedAt) {
			t.Errorf("claim %d of %s at %s comes after one at %s", i, mine[i].UserID, mine[i].CreatedAt, mine[i-1].CreatedAt)
		}
	}
	same(t, "claims of a user in a campaign", len(list(dibs.ClaimFilter{UserID: "u1", Campaign: c.Number})), 17)
	pending, released := dibs.Pending, dibs.Released
	same(t, "pending claims", len(list(dibs.ClaimFilter{Status: &pending})), 50)
	same(t, "pending claims of a user", len(list(dibs.ClaimFilter{Status: &pending, UserID: "u0"})), 25)
	same(t, "released claims", len(list(dibs.ClaimFilter{Status: &released})), 0)
	same(t, "claims of a user who has none", len(list(dibs.ClaimFilter{UserID: "nobody"})), 0)
	badCursor(t, func(page dibs.Page) error { _, err := l.Claims.ClaimList(ctx, dibs.ClaimFilter{}, page); return err })
}

// testAudit audits a campaign in which users hold more than the limit: the
// audit names the first ten of them, in order, and its sums are those of the
// claims. The audit only reports. A ledger settles such claims all the same:
// the limit is the engine's to keep, and the users were told yes.
func testAudit(t *testing.T, f *fixture) {
	ctx := t.Context()
	c := campaign("c", 100)
	c.LimitPerUser = 2
	_, s := f.loaded(c)
	s.grant("good", 2)
	// Twelve users above the limit of two; the audit lists ten.
	for i := range 12 {
		s.grant(fmt.Sprintf("bad%02d", i), 3)
	}
	f.settle(s)
	a := try(f.ledger().Audit.Audit(ctx, c)).must(t)
	same(t, "users over the limit", len(a.OverLimit), 10)
	same(t, "the first of them", a.OverLimit[0], "bad00")
	same(t, "units held", a.Held, int64(38))
	same(t, "stock left", a.StockLeft, int64(62))
	same(t, "bad totals", len(a.BadTotals), 0)
	wants(t, "audit an unknown campaign",
		errOf(f.ledger().Audit.Audit(ctx, &dibs.Campaign{ID: "none", Number: c.Number + 1})), dibs.ErrNotFound)
}
