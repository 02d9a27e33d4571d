package ledgertest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// testLivesRefund refunds in parts, up to what was paid, each part once by its
// ref. The claim ends when all went back. Goods come back with a refund or
// later, and once. More must never go back than was paid, and stock comes back
// only when the goods do: money and goods move apart.
func testLivesRefund(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 10))
	p, q := s.grant("u1", 2), s.grant("u2", 1)
	f.settle(s)
	// Unpaid claims are cancelled, not refunded.
	f.refused("a refund of an unpaid claim", step(c, p, dibs.StepRefund, dibs.EventFacts{}), dibs.ErrInvalidState)
	f.moves(step(c, p, dibs.StepConfirm, paid("p1", 1000)))
	f.moves(step(c, q, dibs.StepConfirm, paid("p2", 500)))

	part := step(c, p, dibs.StepRefund, paid("r1", 300))
	same(t, "the status after a part", f.moves(part).Status, dibs.Confirmed)
	same(t, "the same refund again", f.move(part).Replayed, true)
	f.refused("more than is left", step(c, p, dibs.StepRefund, paid("r2", 701)), dibs.ErrInvalidState)
	dollars := paid("r2", 1)
	dollars.Amount.Currency = "USD"
	f.refused("another currency", step(c, p, dibs.StepRefund, dollars), dibs.ErrInvalid)
	// Without an amount all that is left goes back.
	claim := f.moves(step(c, p, dibs.StepRefund, dibs.EventFacts{Ref: "r3"}))
	same(t, "the status after all", claim.Status, dibs.Refunded)
	same(t, "what went back", claim.Payment.Refunded, int64(1000))
	f.refused("a refund of nothing", step(c, p, dibs.StepRefund, dibs.EventFacts{}), dibs.ErrInvalidState)
	same(t, "the totals without restock", f.totals(c, 0), live.ShardTotals{
		Position: q.Cursor, Epoch: q.Epoch, Stock: 10, StockLeft: 7, Confirmed: 1, Refunded: 2,
	})

	// The goods came later.
	// The claim is refunded already; this gives its stock back and moves no money.
	f.moves(step(c, p, dibs.StepRefund, dibs.EventFacts{Restock: true}))
	f.refused("a second restock", step(c, p, dibs.StepRefund, dibs.EventFacts{Restock: true}), dibs.ErrInvalidState)
	// A fee is kept, and the goods came.
	fee := paid("", 400)
	fee.Restock = true
	same(t, "the status after a restock", f.moves(step(c, q, dibs.StepRefund, fee)).Status, dibs.Refunded)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: q.Cursor, Epoch: q.Epoch, Stock: 10, StockLeft: 10, Refunded: 3,
	})
	same(t, "releases", f.released(f.ledger()), []dibs.Position{p, q})
	a := f.clean(c)
	same(t, "paid and refunded by the audit", []int64{a.Paid, a.Refunded}, []int64{1500, 1400})
	same(t, "held", a.Held, int64(0))

	// A claim that was confirmed by its grant counts as paid.
	d := campaign("d", 5)
	d.Price = &dibs.Money{Amount: 70, Currency: "CNY"}
	f.insert(d)
	_, s = f.load(d, 0)
	r := s.grant("u1", 1)
	f.settle(s)
	f.refused("more than the price", step(d, r, dibs.StepRefund, paid("", 71)), dibs.ErrInvalidState)
	same(t, "the status", f.moves(step(d, r, dibs.StepRefund, dibs.EventFacts{Restock: true})).Status, dibs.Refunded)
	f.clean(d)
}

// testLivesRedeem redeems a coupon and takes that back, each once by its ref. A
// late copy of a use that was taken back is refused, and so is a coupon that
// has ended, is another user's, or was refunded. A till that lost an answer
// repeats; a till whose copy comes after the rollback must not use the coupon a
// second time.
func testLivesRedeem(t *testing.T, f *fixture) {
	c := campaign("c", 0)
	c.Kind, c.ValidFor = dibs.Coupon, time.Hour
	_, s := f.loaded(c, values("code", 5)...)
	p, q := s.grant("u1", 1, 0), s.grant("u2", 1, 1)
	f.settle(s)
	use := func(ref string) dibs.Move { return step(c, p, dibs.StepRedeem, dibs.EventFacts{Ref: ref}) }
	back := func(ref string) dibs.Move { return step(c, p, dibs.StepUnredeem, dibs.EventFacts{Ref: ref}) }
	theirs := use("o1")
	theirs.UserID = "u2"
	f.refused("another user's coupon", theirs, dibs.ErrNotFound)
	// The coupon is valid for an hour from its grant.
	late := use("o1")
	late.At = start.Add(2 * time.Hour)
	f.refused("a coupon that has ended", late, dibs.ErrInvalidState)
	f.refused("a rollback of nothing", back("o1"), dibs.ErrInvalidState)
	// One use at a time: the coupon is taken until the rollback.
	f.moves(use("o1"))
	same(t, "the same use again", f.move(use("o1")).Replayed, true)
	f.refused("a second use", use("o2"), dibs.ErrInvalidState)
	f.refused("a refund of a coupon in use", step(c, p, dibs.StepRefund, dibs.EventFacts{}), dibs.ErrInvalidState)
	f.refused("a rollback of another use", back("o2"), dibs.ErrInvalidState)
	f.moves(back("o1"))
	same(t, "the same rollback again", f.move(back("o1")).Replayed, true)
	f.refused("a late copy of the first use", use("o1"), dibs.ErrInvalidState)
	f.moves(use("o2"))
	// Without a ref the use that stands is taken back.
	f.moves(back(""))
	f.refused("shipping a coupon", step(c, q, dibs.StepShip, dibs.EventFacts{Carrier: "x", TrackingNo: "y"}), dibs.ErrInvalidState)
	same(t, "the status of what was taken back", f.moves(step(c, p, dibs.StepRefund, dibs.EventFacts{Restock: true})).Status, dibs.Refunded)
	f.refused("use of what was taken back", use("o3"), dibs.ErrInvalidState)
	same(t, "held", f.clean(c).Held, int64(1))

	// Only coupons are redeemed.
	sale, s := f.loaded(campaign("sale", 1))
	bought := s.grant("u1", 1)
	f.settle(s)
	f.refused("redeeming what was sold", step(sale, bought, dibs.StepRedeem, dibs.EventFacts{Ref: "o"}), dibs.ErrInvalidState)
	got := try(f.ledger().Live.Campaign(t.Context(), "c")).must(t)
	same(t, "the campaign's coupons live", got.ValidFor, time.Hour)
}

// testLivesGroups moves two claims together: a late payment ends one claim and
// confirms another, or neither. Half of it would take the user's money for no
// claim, or give two claims for one payment.
func testLivesGroups(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 10))
	old, next, third := s.grant("u1", 1), s.grant("u1", 1), s.grant("u1", 1)
	f.settle(s)
	f.moves(step(c, old, dibs.StepCancel, dibs.EventFacts{}))
	group := func(to dibs.Position, ref string) []dibs.Move {
		replace, confirm := paid(ref, 500), paid(ref, 500)
		replace.Other, confirm.Other = &to, &old
		return []dibs.Move{step(c, old, dibs.StepReplace, replace), step(c, to, dibs.StepConfirm, confirm)}
	}
	// The third claim is released too, so a payment cannot be moved to it.
	f.moves(step(c, third, dibs.StepCancel, dibs.EventFacts{}))
	// Three groups in one call: the first and the third are refused, the second one
	// is made.
	moved := try(f.ledger().Orders.Move(t.Context(), [][]dibs.Move{group(third, "p"), group(next, "p"), group(next, "q")})).must(t)
	wants(t, "the first of a group that was refused", moved[0][0].Err, dibs.ErrConflict)
	wants(t, "its second", moved[0][1].Err, dibs.ErrLatePayment)
	same(t, "a group that was made", fmt.Sprint(moved[1][0].Err, moved[1][1].Err), "<nil> <nil>")
	same(t, "what replaces the claim", *moved[1][0].Claim.Events[1].Other, next)
	wants(t, "another payment", moved[2][0].Err, dibs.ErrInvalidState)
	wants(t, "its second", moved[2][1].Err, dibs.ErrInvalidState)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: third.Cursor, Epoch: old.Epoch, Stock: 10, StockLeft: 9, Confirmed: 1, Released: 2,
	})
	// The same group again: each of its moves is a repeat.
	moved = try(f.ledger().Orders.Move(t.Context(), [][]dibs.Move{group(next, "p")})).must(t)
	same(t, "the group again", []bool{moved[0][0].Replayed, moved[0][1].Replayed}, []bool{true, true})
	f.clean(c)
}

// testLivesMany crosses every size of statement, several epochs and shards.
// Each group stands alone although they share a transaction: none may be lost
// or made twice at the border of a statement.
func testLivesMany(t *testing.T, f *fixture) {
	c := f.insert(inShards(2, unpaid("c", 20_000)))
	var groups [][]dibs.Move
	for shard := range uint8(2) {
		_, s := f.load(c, shard)
		for range 2 {
			for i := range 600 {
				p := s.grant(fmt.Sprintf("u%d-%d", shard, i), 1)
				m := step(c, p, dibs.StepConfirm, paid(fmt.Sprint("p", i), 500))
				if i%3 == 0 {
					m = step(c, p, dibs.StepCancel, dibs.EventFacts{})
				}
				groups = append(groups, []dibs.Move{m})
			}
			load, _ := f.load(c, shard)
			// The second round's grants are in an epoch of their own.
			s.reopen(load.Epoch)
		}
		f.settle(s)
	}
	moved := try(f.ledger().Orders.Move(t.Context(), groups)).must(t)
	for i := range moved {
		f.must(moved[i][0].Err)
	}
	a := f.clean(c)
	same(t, "units by status", fmt.Sprint(a.ByStatus), "map[confirmed:1600 released:800]")
	same(t, "paid", a.Paid, int64(1600*500))
	same(t, "releases", len(f.released(f.ledger())), 800)
}

// testLivesRace lets nodes confirm, cancel and expire the same claims: one step
// of each wins, and the sums follow it. Payment, cancel and deadline often meet
// in the same second. Two that both win would sell a unit that was paid for.
func testLivesRace(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 1000))
	var at []dibs.Position
	for i := range 60 {
		at = append(at, s.grant(fmt.Sprint("u", i), 1))
	}
	f.settle(s)
	ledgers := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	var won atomic.Int64
	f.together(len(ledgers), func(i int) error {
		// Each node takes another step of the same claim, in the same order of claims.
		for j, p := range at {
			m := step(c, p, dibs.StepConfirm, paid("p", 500))
			if (i+j)%3 == 1 {
				m = step(c, p, dibs.StepCancel, dibs.EventFacts{})
			}
			if (i+j)%3 == 2 {
				m.Step, m.At = dibs.StepExpire, start.Add(time.Hour)
			}
			moved, err := ledgers[i].Orders.Move(t.Context(), [][]dibs.Move{{m}})
			if err != nil {
				return err
			}
			if moved[0][0].Err == nil {
				won.Add(1)
			}
		}
		return nil
	})
	same(t, "steps that won", won.Load(), int64(len(at)))
	same(t, "pending", f.totals(c, 0).Pending, int64(0))
	f.clean(c)
}

// testLivesLoad: a load counts what was released, and drops its commands. A
// command that stayed would be obeyed by an engine whose load has counted it.
func testLivesLoad(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 10))
	p, q := s.grant("u1", 2), s.grant("u2", 1)
	f.settle(s)
	f.moves(step(c, p, dibs.StepCancel, dibs.EventFacts{}))
	load, _ := f.load(c, 0)
	same(t, "stock left in the load", load.StockLeft, int64(9))
	same(t, "the released holding", load.Holdings[0].Released, true)
	same(t, "releases after the load", len(f.released(f.ledger())), 0)
	// A cancel after the load is for the new epoch.
	f.moves(step(c, q, dibs.StepCancel, dibs.EventFacts{}))
	cmds := f.commands()
	same(t, "the epoch of the next command", cmds[0].Releases[0].Epoch, load.Epoch)
	f.clean(c)
}
