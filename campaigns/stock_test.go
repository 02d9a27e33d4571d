package campaigns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// changeBy changes the stock by a ref.
func changeBy(p *testnode.Parts, id string, delta int64, ref string) error {
	return changeWithin(p, 20*time.Second, id, delta, ref)
}

// heldUp changes the stock while the test holds settling up, which a withdrawal waits for.
func heldUp(p *testnode.Parts, id string, delta int64, ref string) error {
	return changeWithin(p, 300*time.Millisecond, id, delta, ref)
}

func changeWithin(p *testnode.Parts, patience time.Duration, id string, delta int64, ref string) error {
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	_, err := p.Campaigns.ChangeStock(ctx, id, dibs.StockChange{Delta: delta}, ref)
	return err
}

// left is what the engine and the ledger count, which is the same once all is
// settled.
func left(p *testnode.Parts, id string, want int64) {
	p.Helper()
	if st := p.Whole(id); st.Remaining != want || st.Stock != want {
		p.Errorf("%d are left of %d in the engine, want %d", st.Remaining, st.Stock, want)
	}
}

// A ref finds what is recorded under it and a space, so none has a space of its own.
func TestStockRefs(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	for _, ref := range []string{"two words", "line\n", "上", strings.Repeat("r", dibs.MaxKeyLen+1)} {
		_, changed := p.Campaigns.ChangeStock(t.Context(), "sale", dibs.StockChange{Delta: 1}, ref)
		_, imported := p.Campaigns.ImportCodes(t.Context(), "sale", strings.NewReader("A1\n"), ref, nil)
		for _, err := range []error{changed, imported} {
			if !errors.Is(err, dibs.ErrInvalid) || !strings.Contains(err.Error(), "ref must be 1-246 visible") {
				t.Errorf("the ref %q: %v", ref, err)
			}
		}
	}
	// One that another begins with is not taken for a part of it.
	for i, ref := range []string{"friday!", "friday-evening", "friday"} {
		if c, err := p.Campaigns.ChangeStock(t.Context(), "sale", dibs.StockChange{Delta: 7}, ref); err != nil || c.Stock.Total != int64(10+7*(i+1)) {
			t.Errorf("%q: %+v, %v", ref, c, err)
		}
	}
}

// seats publishes a campaign of one seat.
func seats(p *testnode.Parts) {
	p.Helper()
	now := time.Now()
	_, err := p.Campaigns.Create(p.Context(), dibs.CampaignSpec{
		ID: "seats", Kind: dibs.Sale, Title: "seats", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour), Stock: dibs.StockSpec{Items: []string{"A1"}},
	})
	if err == nil {
		_, err = p.Campaigns.Publish(p.Context(), "seats")
	}
	if err != nil {
		p.Fatal(err)
	}
}

// The longest ref that is taken reaches the engine as one that it takes, with all that is put
// behind it: a command that it refuses would hold up all later ones of the shard.
func TestTheLongestStockRef(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	seats(p)
	f := func(ctx context.Context, a dibs.Adjustment) error {
		if len(a.Ref) > dibs.MaxKeyLen {
			t.Errorf("the engine is given a ref of %d bytes", len(a.Ref))
		}
		return p.Engine.Engine.Adjust(ctx, a)
	}
	p.Engine.OnAdjust.Store(&f)
	longest, err := strings.Repeat("r", dibs.MaxKeyLen+1), error(nil)
	for refused := true; refused; refused = errors.Is(err, dibs.ErrInvalid) {
		longest = longest[1:]
		_, err = p.Campaigns.ImportCodes(t.Context(), "seats", strings.NewReader("B1\nB2\n"), longest, nil)
	}
	if err == nil {
		err = changeBy(p, "seats", -1, "w"+longest[1:])
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := len(campaigns.CommandRef(longest, dibs.MaxItems)); n > dibs.MaxKeyLen {
		t.Errorf("the last command of an import may have a ref of %d bytes", n)
	}
	left(p, "seats", 2)
}

// No ref that a caller can give is that of an import's commands: the engine would take a
// restock by it for a repeat, after the ledger has counted it.
func TestARestockIsNoRepeatOfAnImport(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	seats(p)
	if _, err := p.Campaigns.ImportCodes(t.Context(), "seats", strings.NewReader("B1\nB2\n"), "box", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Campaigns.ChangeStock(t.Context(), "seats", dibs.StockChange{Items: []string{"C1"}}, "box/1"); err != nil {
		t.Fatal(err)
	}
	left(p, "seats", 4)
}

// A stock ref names one change: with the other sign, or another amount, it is
// refused, and nothing changes.
func TestAStockRefNamesOneChange(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Draft("draft", 10)
	for _, id := range []string{"sale", "draft"} {
		for range 2 {
			for _, made := range []struct {
				delta int64
				ref   string
			}{{5, "up"}, {-3, "down"}} {
				if _, err := p.Campaigns.ChangeStock(t.Context(), id, dibs.StockChange{Delta: made.delta}, made.ref); err != nil {
					t.Fatalf("%s: %d by %q: %v", id, made.delta, made.ref, err)
				}
				for _, other := range []int64{-made.delta, made.delta + 1, made.delta - 1, -1, 1} {
					_, err := p.Campaigns.ChangeStock(t.Context(), id, dibs.StockChange{Delta: other}, made.ref)
					var e *dibs.Error
					if !errors.As(err, &e) || e.Reason != dibs.KeyReused || e.Detail.EN == "" || e.Detail.ZH == "" {
						t.Errorf("%s: %d by %q, which was %d: %v", id, other, made.ref, made.delta, err)
					}
				}
			}
		}
	}
	if c, err := p.Live.Registry.Get(t.Context(), "draft"); err != nil || c.Stock.Total != 12 {
		t.Errorf("the draft: %+v, %v", c, err)
	}
	left(p, "sale", 12)
	if _, err := p.Campaigns.Publish(t.Context(), "draft"); err != nil {
		t.Fatal(err)
	}
	if err := changeBy(p, "draft", 3, "down"); !errors.Is(err, dibs.ErrKeyReused) {
		t.Errorf("published meanwhile, the ref is used: %v", err)
	}
	left(p, "draft", 12)
}

// A withdrawal that nobody has settled yet and a restock with its ref: what the
// engine counts is what the ledger counts.
func TestOneStockRefWithTwoSigns(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Settling(true)
	err := heldUp(p, "sale", -3, "ref")
	var e *dibs.Error
	if !errors.As(err, &e) || e.Effect != dibs.EffectUnknown {
		t.Fatalf("a withdrawal that cannot be settled: %v", err)
	}
	if err := changeBy(p, "sale", 5, "ref"); err != nil {
		t.Fatalf("the ledger knows of no change by the ref yet: %v", err)
	}
	p.Settling(false)
	left(p, "sale", 12)
	for _, delta := range []int64{-3, 5} {
		if err := changeBy(p, "sale", delta, "ref"); err != nil {
			t.Errorf("%d again: %v", delta, err)
		}
	}
	for _, delta := range []int64{-4, 6} {
		if err := changeBy(p, "sale", delta, "ref"); !errors.Is(err, dibs.ErrKeyReused) {
			t.Errorf("the ref with %d: %v", delta, err)
		}
	}
	left(p, "sale", 12)
}

// Another amount of a withdrawal that is not settled yet is no repeat of it.
func TestAnUnsettledWithdrawalOfAnotherAmount(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 10)
	p.Settling(true)
	if err := heldUp(p, "sale", -3, "ref"); !errors.Is(err, dibs.ErrUnavailable) {
		t.Fatalf("a withdrawal that cannot be settled: %v", err)
	}
	// It is settled when the other one has reached the engine, which knows the ref.
	heal := func(ctx context.Context, a dibs.Adjustment) error {
		p.Settling(false)
		return p.Engine.Engine.Adjust(ctx, a)
	}
	p.Engine.OnAdjust.Store(&heal)
	if _, err := p.Campaigns.ChangeStock(t.Context(), "sale", dibs.StockChange{Delta: -4}, "ref"); !errors.Is(err, dibs.ErrKeyReused) {
		t.Errorf("the withdrawal of another amount: %v", err)
	}
	left(p, "sale", 7)
}

// TestStockRefsAtRandom changes stock by few refs with either sign, while
// settling fails now and then: what was taken for done counts once, and engine and
// ledger agree.
func TestStockRefsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 1000)
	type change struct {
		ref   string
		delta int64
	}
	done := map[change]bool{}
	for range 60 {
		p.Settling(rng.IntN(4) == 0)
		x := change{ref: fmt.Sprint("ref-", rng.IntN(12)), delta: []int64{4, 4, 2, -4, -4, -2}[rng.IntN(6)]}
		err := heldUp(p, "sale", x.delta, x.ref)
		switch {
		case err == nil:
			done[x] = true
		case errors.Is(err, dibs.ErrKeyReused):
			if done[x] {
				t.Errorf("%+v was done before, and again: %v", x, err)
			}
		case !errors.Is(err, dibs.ErrUnavailable):
			t.Errorf("%+v: %v", x, err)
		}
	}
	p.Settling(false)
	st := p.Whole("sale")
	for x := range done {
		if err := changeBy(p, "sale", x.delta, x.ref); err != nil {
			t.Errorf("%+v again: %v", x, err)
		}
		if half := (change{x.ref, x.delta / 2}); x.delta%4 == 0 && done[half] {
			t.Errorf("%+v and %+v were both done", x, half)
		}
	}
	if again := p.Whole("sale"); again.Stock != st.Stock || again.Remaining != st.Remaining || st.Remaining != st.Stock {
		t.Errorf("repeats have changed %+v to %+v", st, again)
	}
	t.Logf("%d changes are sure", len(done))
}

// A restock opens a sold-out campaign at once, happens once however often it
// is sent, and outlives a restart.
func TestRestockReopensOnce(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 2))
	r.Sell("phone", 2)
	r.Wants(dibs.SoldOut, "phone", "late", "k")
	for range 3 {
		if c := r.ChangeStock("phone", dibs.StockChange{Delta: 2, Why: "found two more"}, "restock-1"); c.Stock.Total != 4 {
			t.Fatalf("the stock is %d, want 4", c.Stock.Total)
		}
	}
	r.Wants(dibs.Granted, "phone", "late", "k")
	r.Reopen()
	r.ChangeStock("phone", dibs.StockChange{Delta: 2}, "restock-1")
	r.Wants(dibs.Granted, "phone", "later", "k")
	r.Wants(dibs.SoldOut, "phone", "last", "k")
	if st := r.Stats("phone"); st.Stock != 4 || st.Granted != 4 || st.Remaining != 0 {
		t.Fatalf("%+v", st)
	}
	r.Verify()
}

func TestWithdrawNeverGoesBelowWhatIsGranted(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	r.Sell("phone", 4)
	_, err := r.Node.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: -7}, "")
	r.Fails(err, dibs.InvalidState)
	for range 2 {
		if c := r.ChangeStock("phone", dibs.StockChange{Delta: -6}, "recall"); c.Stock.Total != 4 {
			t.Fatalf("the stock is %d, want 4", c.Stock.Total)
		}
	}
	r.Wants(dibs.SoldOut, "phone", "late", "")
	r.Reopen()
	r.ChangeStock("phone", dibs.StockChange{Delta: -6}, "recall")
	if st := r.Stats("phone"); st.Stock != 4 || st.Granted != 4 || st.Remaining != 0 {
		t.Fatalf("%+v", st)
	}
	r.Verify()
}

func TestADraftsStockCanChange(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	if _, err := r.Node.Campaigns.Create(t.Context(), r.Sale("phone", 10)); err != nil {
		t.Fatal(err)
	}
	r.ChangeStock("phone", dibs.StockChange{Delta: 5}, "")
	if c := r.ChangeStock("phone", dibs.StockChange{Delta: -12}, ""); c.Stock.Total != 3 {
		t.Fatalf("the stock is %d, want 3", c.Stock.Total)
	}
	_, err := r.Node.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: -4}, "")
	r.Fails(err, dibs.InvalidState)
	if _, err := r.Node.Campaigns.Publish(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	r.Sell("phone", 3)
	r.Wants(dibs.SoldOut, "phone", "late", "")
	r.Verify()
}

// Items and codes: each goes to one claim at most, added ones too.
func TestItemsGoToOneClaimEach(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	seats := r.Sale("seats", 0)
	seats.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4"}}
	r.Publish(seats)
	codes := r.Sale("codes", 0)
	codes.Kind, codes.Stock = dibs.Coupon, dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 3}}
	r.Publish(codes)
	var got []string
	claim := func(user string) {
		t.Helper()
		got = append(got, r.Wants(dibs.Granted, "seats", user, "k").Claim.Items...)
	}
	claim("u1")
	r.ChangeStock("seats", dibs.StockChange{Delta: -1}, "")
	claim("u2")
	r.Reopen()
	claim("u3")
	r.Wants(dibs.SoldOut, "seats", "u4", "k")
	r.ChangeStock("seats", dibs.StockChange{Items: []string{"B1", "B2"}}, "")
	claim("u4")
	r.Reopen()
	claim("u5")
	r.Wants(dibs.SoldOut, "seats", "u6", "k")
	if want := []string{"A1", "A2", "A3", "B1", "B2"}; !slices.Equal(got, want) {
		t.Errorf("granted %v, want %v", got, want)
	}
	for i, seat := range got {
		if again := r.Wants(dibs.Granted, "seats", fmt.Sprint("u", i+1), "k"); !again.Replayed || !slices.Equal(again.Claim.Items, []string{seat}) {
			t.Errorf("u%d has %v, then %v", i+1, seat, again.Claim.Items)
		}
	}
	r.ChangeStock("codes", dibs.StockChange{Delta: 2}, "")
	seen := map[string]bool{}
	for i := range 5 {
		items := r.Wants(dibs.Granted, "codes", fmt.Sprint("u", i), "").Claim.Items
		if len(items) != 1 || seen[items[0]] {
			t.Errorf("u%d got %v", i, items)
		}
		seen[items[0]] = true
	}
	r.Verify()
}

// A pattern allows a million times as many codes as the campaign gives out, added ones too.
func TestNoCodesThatCouldBeGuessed(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	codes := r.Sale("codes", 0)
	codes.Kind, codes.Stock = dibs.Coupon, dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 3, Pattern: "XXXXXX"}} // 25^5 = 9,765,625
	if _, err := r.Node.Campaigns.Create(t.Context(), codes); err != nil {
		t.Fatal(err)
	}
	patch := func(n int64) error {
		_, err := r.Node.Campaigns.Patch(t.Context(), "codes", dibs.CampaignPatch{Stock: &dibs.StockSpec{Codes: &dibs.CodesSpec{Count: n}}})
		return err
	}
	if e := r.Fails(patch(10), dibs.InvalidRequest); e.Faults[0].Field != "/stock/codes/count" {
		t.Errorf("%+v", e)
	}
	if err := patch(5); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Node.Campaigns.Publish(t.Context(), "codes"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Node.Campaigns.ChangeStock(t.Context(), "codes", dibs.StockChange{Delta: 5}, "")
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/delta" {
		t.Errorf("%+v", e)
	}
	if c := r.ChangeStock("codes", dibs.StockChange{Delta: 4}, ""); c.Stock.Total != 9 {
		t.Errorf("%d codes, want 9", c.Stock.Total)
	}
	r.Verify()
}

// TestNoItemsIntoAnOlderLedger adds items while the ledger is older than what the engine knows to be settled: it may lack
// items that users were given, and would give their numbers again. Units have none.
func TestNoItemsIntoAnOlderLedger(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	seats := r.Sale("seats", 0)
	seats.Stock = dibs.StockSpec{Items: []string{"A1", "A2"}}
	r.Publish(seats)
	r.Publish(r.Sale("phone", 2))
	r.Sell("seats", 2)
	r.Sell("phone", 2)
	if err := errors.Join(r.Settle("seats"), r.Settle("phone")); err != nil {
		t.Fatal(err)
	}
	r.Tamper("UPDATE positions SET pos_seq = pos_seq - 1")
	_, err := r.Node.Campaigns.ChangeStock(t.Context(), "seats", dibs.StockChange{Items: []string{"B1"}}, "b")
	r.Fails(err, dibs.Unavailable)
	_, err = r.Node.Campaigns.ImportCodes(t.Context(), "seats", strings.NewReader("B1\n"), "b", nil)
	r.Fails(err, dibs.Unavailable)
	r.ChangeStock("phone", dibs.StockChange{Delta: 1}, "")
	r.Tamper("UPDATE positions SET pos_seq = pos_seq + 1")
	r.ChangeStock("seats", dibs.StockChange{Items: []string{"B1"}}, "b")
	r.Verify()
}

func TestStockChangesThatMakeNoSense(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	seats := r.Sale("seats", 0)
	seats.Stock = dibs.StockSpec{Items: []string{"A1"}}
	r.Publish(seats)
	for _, c := range []struct {
		campaign string
		ch       dibs.StockChange
		field    string
	}{
		{"phone", dibs.StockChange{}, "/delta"},
		{"phone", dibs.StockChange{Delta: dibs.MaxStock}, "/delta"},
		{"phone", dibs.StockChange{Delta: -1 << 62}, "/delta"},
		{"phone", dibs.StockChange{Items: []string{"A"}}, "/items"},
		{"seats", dibs.StockChange{Delta: 1}, "/items"},
		{"seats", dibs.StockChange{Delta: 2, Items: []string{"B1"}}, "/delta"},
		{"seats", dibs.StockChange{Items: []string{"B1", "B1"}}, "/items/1"},
		{"seats", dibs.StockChange{Items: []string{"A1"}}, "/items/0"},
	} {
		_, err := r.Node.Campaigns.ChangeStock(t.Context(), c.campaign, c.ch, "")
		if e := r.Fails(err, dibs.InvalidRequest); len(e.Faults) != 1 || e.Faults[0].Field != c.field {
			t.Errorf("%s %+v: %v, want a fault at %s", c.campaign, c.ch, err, c.field)
		}
	}
	if _, err := r.Node.Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Node.Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: 1}, "")
	r.Fails(err, dibs.InvalidState)
	_, err = r.Node.Campaigns.ChangeStock(t.Context(), "nothing", dibs.StockChange{Delta: 1}, "")
	r.Fails(err, dibs.NotFound)
	r.Verify()
}
