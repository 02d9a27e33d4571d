package ledgertest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/orders"
)

// product stores a product with a regular stock. Amounts are in fen.
func (f *fixture) product(stock int64, payWithin time.Duration) *dibs.Product {
	f.t.Helper()
	p := &dibs.Product{
		Status: dibs.OnSale,
		ID:     "p", Name: "p", Price: &dibs.Money{Amount: 500, Currency: "CNY"}, Stock: stock, StockLeft: stock, PayWithin: payWithin,
		LatePayment: dibs.Reclaim, Version: 1, CreatedAt: start, UpdatedAt: start,
	}
	f.must(f.ledger().Campaigns.InsertProduct(f.t.Context(), p))
	return p
}

// order orders units of the product.
func (f *fixture) order(user string, quantity int64, key uint64) orders.Result {
	f.t.Helper()
	res := try(f.ledger().Orders.Order(f.t.Context(), orders.Order{ProductID: "p", UserID: user, Quantity: quantity, Key: key, At: start})).must(f.t)
	return res
}

// testRegularHeld: a user's unpaid units are bounded, whatever others hold and
// however often it is tried. Without a bound one user could hold the whole
// stock unpaid, again and again. MostHeld 0 stands for no bound.
func testRegularHeld(t *testing.T, f *fixture) {
	f.product(100, time.Minute)
	order := func(user string, quantity, most int64, key uint64) orders.Result {
		res := try(f.ledger().Orders.Order(t.Context(), orders.Order{ProductID: "p", UserID: user, Quantity: quantity, Key: key, At: start, MostHeld: most})).must(t)
		return res
	}
	first := order("u1", 3, 4, 7)
	same(t, "within the bound", first.Outcome, dibs.Granted)
	// Three units are held, two more are asked for: the answer names the order in
	// the way.
	over := order("u1", 2, 4, 0)
	same(t, "beyond it", []any{over.Outcome, over.Held}, []any{dibs.LimitReached, []dibs.Position{first.Claim.Position}})
	same(t, "nothing is written", f.left(), int64(97))
	same(t, "a repeat", order("u1", 3, 4, 7).Replayed, true)
	same(t, "another user", order("u2", 4, 4, 0).Outcome, dibs.Granted)
	same(t, "up to it", order("u1", 1, 4, 0).Outcome, dibs.Granted)
	same(t, "without a bound", order("u1", 5, 0, 0).Outcome, dibs.Granted)
	f.moves(step(first.Campaign, first.Claim.Position, dibs.StepConfirm, paid("pay", 1500)))
	same(t, "paid units do not count", order("u1", 4, 10, 0).Outcome, dibs.Granted)
	f.clean(first.Campaign)
}

// left reads what is left of the product's stock.
func (f *fixture) left() int64 {
	f.t.Helper()
	p := try(f.ledger().Campaigns.Product(f.t.Context(), "p")).must(f.t)
	return p.StockLeft
}

// testRegular sells a product's own stock without an engine: repeats by the
// key, sold out, and then the steps of all claims. The campaign behind it is in
// no list and has no commands. Each product has a hidden campaign for its
// regular orders, so that claims, steps and audits are the same code.
func testRegular(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	wants(t, "of no product", errOf(l.Orders.Order(ctx, orders.Order{ProductID: "p", UserID: "u", Quantity: 1, At: start})), dibs.ErrNotFound)
	f.product(10, time.Minute)
	first := f.order("u1", 2, 7)
	same(t, "the first order", []any{first.Outcome, first.Replayed, first.Claim.Status, first.Claim.OrderType, *first.Claim.Amount, first.Claim.PayBy},
		[]any{dibs.Granted, false, dibs.Pending, dibs.RegularOrder, dibs.Money{Amount: 1000, Currency: "CNY"}, start.Add(time.Minute)})
	c := first.Campaign
	same(t, "it is read", lifeOf(try(l.Claims.Claim(ctx, first.Claim.Position)).must(t)), lifeOf(first.Claim))
	same(t, "what is left", f.left(), int64(8))
	again := f.order("u1", 2, 7)
	same(t, "a repeat", []any{again.Replayed, again.Claim.Position}, []any{true, first.Claim.Position})
	same(t, "another quantity", f.order("u1", 3, 7).Outcome, dibs.KeyReused)
	// A key belongs to its user: u2 may use 7 too.
	same(t, "another user", f.order("u2", 8, 7).Outcome, dibs.Granted)
	none := f.order("u3", 1, 0)
	same(t, "nothing is left", []any{none.Outcome, none.Remaining}, []any{dibs.SoldOut, int64(0)})
	same(t, "a repeat of what was sold", f.order("u1", 2, 7).Replayed, true)
	f.clean(c)

	// It moves as all claims do.
	f.moves(step(c, first.Claim.Position, dibs.StepConfirm, paid("pay", 1000)))
	f.moves(step(c, first.Claim.Position, dibs.StepRefund, dibs.EventFacts{Restock: true}))
	same(t, "after a refund with restock", f.left(), int64(2))
	// u2 never pays: the eight units come back to the product's stock.
	same(t, "expired", try(l.Orders.Expire(ctx, start.Add(time.Hour), 10)).must(t), 1)
	same(t, "after the expiry", f.left(), int64(10))
	same(t, "commands to an engine", len(f.commands()), 0)
	f.clean(c)

	// No list of campaigns shows it, and no id names it.
	// Only the state RegularState shows it, which no admin sets.
	same(t, "campaigns", len(try(l.Campaigns.Campaigns(ctx, nil, "", dibs.Page{})).must(t).Items), 0)
	wants(t, "the campaign by its id", errOf(l.Live.Campaign(ctx, c.ID)), dibs.ErrNotFound)
	same(t, "the product's campaigns", try(l.Orders.CampaignsOf(ctx, "p")).must(t), []uint32{c.Number})
	regular := try(l.Campaigns.Campaigns(ctx, []dibs.State{dibs.RegularState}, "", dibs.Page{})).must(t)
	same(t, "campaigns of regular orders", len(regular.Items), 1)

	f.changeProduct(c)
}

// changeProduct changes the product under its orders. Orders keep their
// price and terms; new orders take the new ones. The stock may
// go down to what is ordered, and no lower.
func (f *fixture) changeProduct(c *dibs.Campaign) {
	t, l, ctx := f.t, f.ledger(), f.t.Context()
	p := try(l.Campaigns.Product(ctx, "p")).must(t)
	p.Stock, p.Price, p.PayWithin, p.LatePayment = 4, nil, 0, dibs.RefundDue
	f.must(l.Campaigns.UpdateProduct(ctx, p))
	same(t, "what is left of less", f.left(), int64(4))
	free := f.order("u1", 3, 8)
	same(t, "a free order", []any{free.Claim.Status, free.Claim.Amount == nil, free.Campaign.LatePayment}, []any{dibs.Confirmed, true, dibs.RefundDue})
	f.clean(c)
	p.Stock = 2
	wants(t, "a stock below what is ordered", l.Campaigns.UpdateProduct(ctx, p), dibs.ErrInvalidState)
	p.Stock = 3
	f.must(l.Campaigns.UpdateProduct(ctx, p))
	same(t, "what is left of what is ordered", f.left(), int64(0))
	p.Stock, p.Price = 100, &dibs.Money{Amount: dibs.MaxMinor - 1, Currency: "CNY"}
	f.must(l.Campaigns.UpdateProduct(ctx, p))
	wants(t, "an amount that is none", errOf(l.Orders.Order(ctx, orders.Order{ProductID: "p", UserID: "u", Quantity: 2, At: start})), dibs.ErrInvalid)
	// A late payment orders anew at the price that was paid.
	late := try(l.Orders.Order(ctx, orders.Order{ProductID: "p", UserID: "u", Quantity: 2, At: start, Late: true, Amount: &dibs.Money{Amount: 7, Currency: "CNY"}})).must(t)
	same(t, "what it cost before", late.Claim.Amount.Amount, int64(7))
	a := f.clean(c)
	same(t, "the audit's stock", a.Stock, int64(100))
	same(t, "a recount", len(try(l.Audit.Recount(ctx, c)).must(t)), 0)
}

// testRegularRace: many order at once, through two ledgers, while the product's
// stock changes: never one too many, and a key counts once. There is no engine
// here: the database alone decides.
func testRegularRace(t *testing.T, f *fixture) {
	ctx, p := t.Context(), f.product(20, 0)
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	const callers = 16
	var sold atomic.Int64
	p.Stock = 25
	// The stock grows while users order; a change that meets an order may be a
	// conflict, and is then made again.
	grow := func() error {
		for {
			if err := ledgers[1].Campaigns.UpdateProduct(ctx, p); !errors.Is(err, dibs.ErrConflict) {
				return err
			}
		}
	}
	f.together(callers+1, func(i int) (failed error) {
		if i == callers {
			return grow()
		}
		for j := range 4 {
			// Each key is used by two callers.
			o := orders.Order{ProductID: "p", UserID: fmt.Sprint("u", i/2), Quantity: 1, Key: uint64(j + 1), At: start}
			res, err := ledgers[i%2].Orders.Order(ctx, o)
			failed = errors.Join(failed, err)
			if err == nil && res.Outcome == dibs.Granted && !res.Replayed {
				sold.Add(1)
			}
		}
		return failed
	})
	// 32 different orders for 25 units, unless they came before the last five.
	if n, left := sold.Load(), f.left(); n > 25 || n+left != 25 || left > 5 {
		t.Errorf("%d of 25 are sold, %d are left", n, left)
	}
	c := f.order("last", 1, 1).Campaign
	f.clean(c)
}
