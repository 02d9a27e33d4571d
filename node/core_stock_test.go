package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/node"
)

// change changes the stock by a ref.
func (p *parts) change(id string, delta int64, ref string) error {
	// A withdrawal waits for its settlement, which a test may hold up.
	ctx, cancel := context.WithTimeout(p.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.Campaigns.ChangeStock(ctx, id, dibs.StockChange{Delta: delta}, ref)
	return err
}

// left is what the engine and the ledger count, which is the same once all is
// settled.
func (p *parts) left(id string, want int64) {
	p.Helper()
	if st := p.whole(id); st.Remaining != want || st.Stock != want {
		p.Errorf("%d are left of %d in the engine, want %d", st.Remaining, st.Stock, want)
	}
}

// A stock ref names one change: with the other sign, or another amount, it is
// refused, and nothing changes.
func TestAStockRefNamesOneChange(t *testing.T) {
	p := newParts(t, node.ServiceConfig{})
	p.publish("sale", 10)
	p.draft("draft", 10)
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
	p.left("sale", 12)
	if _, err := p.Campaigns.Publish(t.Context(), "draft"); err != nil {
		t.Fatal(err)
	}
	if err := p.change("draft", 3, "down"); !errors.Is(err, dibs.ErrKeyReused) {
		t.Errorf("published meanwhile, the ref is used: %v", err)
	}
	p.left("draft", 12)
}

// A withdrawal that nobody has settled yet and a restock with its ref: what the
// engine counts is what the ledger counts.
func TestOneStockRefWithTwoSigns(t *testing.T) {
	p := newParts(t, node.ServiceConfig{})
	p.publish("sale", 10)
	p.settling(true)
	err := p.change("sale", -3, "ref")
	var e *dibs.Error
	if !errors.As(err, &e) || e.Effect != dibs.EffectUnknown {
		t.Fatalf("a withdrawal that cannot be settled: %v", err)
	}
	if err := p.change("sale", 5, "ref"); err != nil {
		t.Fatalf("the ledger knows of no change by the ref yet: %v", err)
	}
	p.settling(false)
	p.left("sale", 12)
	for _, delta := range []int64{-3, 5} {
		if err := p.change("sale", delta, "ref"); err != nil {
			t.Errorf("%d again: %v", delta, err)
		}
	}
	for _, delta := range []int64{-4, 6} {
		if err := p.change("sale", delta, "ref"); !errors.Is(err, dibs.ErrKeyReused) {
			t.Errorf("the ref with %d: %v", delta, err)
		}
	}
	p.left("sale", 12)
}

// Another amount of a withdrawal that is not settled yet is no repeat of it.
func TestAnUnsettledWithdrawalOfAnotherAmount(t *testing.T) {
	p := newParts(t, node.ServiceConfig{})
	p.publish("sale", 10)
	p.settling(true)
	if err := p.change("sale", -3, "ref"); !errors.Is(err, dibs.ErrUnavailable) {
		t.Fatalf("a withdrawal that cannot be settled: %v", err)
	}
	// It is settled when the other one has reached the engine, which knows the ref.
	heal := func(ctx context.Context, a dibs.Adjustment) error {
		p.settling(false)
		return p.engine.Engine.Adjust(ctx, a)
	}
	p.engine.adjust.Store(&heal)
	if _, err := p.Campaigns.ChangeStock(t.Context(), "sale", dibs.StockChange{Delta: -4}, "ref"); !errors.Is(err, dibs.ErrKeyReused) {
		t.Errorf("the withdrawal of another amount: %v", err)
	}
	p.left("sale", 7)
}

// TestStockRefsAtRandom changes stock by few refs with either sign, while
// settling fails now and then: what was taken for done counts once, and engine and
// ledger agree.
func TestStockRefsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newParts(t, node.ServiceConfig{})
	p.publish("sale", 1000)
	type change struct {
		ref   string
		delta int64
	}
	done := map[change]bool{}
	for range 60 {
		p.settling(rng.IntN(4) == 0)
		x := change{ref: fmt.Sprint("ref-", rng.IntN(12)), delta: []int64{4, 4, 2, -4, -4, -2}[rng.IntN(6)]}
		err := p.change("sale", x.delta, x.ref)
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
	p.settling(false)
	st := p.whole("sale")
	for x := range done {
		if err := p.change("sale", x.delta, x.ref); err != nil {
			t.Errorf("%+v again: %v", x, err)
		}
		if half := (change{x.ref, x.delta / 2}); x.delta%4 == 0 && done[half] {
			t.Errorf("%+v and %+v were both done", x, half)
		}
	}
	if again := p.whole("sale"); again.Stock != st.Stock || again.Remaining != st.Remaining || st.Remaining != st.Stock {
		t.Errorf("repeats have changed %+v to %+v", st, again)
	}
	t.Logf("%d changes are sure", len(done))
}
