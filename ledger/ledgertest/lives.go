package ledgertest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// unpaid returns a sale with a price and a time to pay that is not stored yet.
func unpaid(id string, stock int64) *dibs.Campaign {
	c := campaign(id, stock)
	c.Price, c.PayWithin = &dibs.Money{Amount: 500, Currency: "CNY"}, 15*time.Minute
	return c
}

// step is a move of a claim, some minutes after the tests' clocks began. The
// time is within the claim's time to pay, which is 15 minutes.
func step(c *dibs.Campaign, p dibs.Position, s dibs.Step, facts dibs.EventFacts) dibs.Move {
	return dibs.Move{Campaign: c, Position: p, Step: s, At: start.Add(5 * time.Minute), EventFacts: facts}
}

// move makes one move and returns what became of it.
func (f *fixture) move(m dibs.Move) dibs.Moved {
	f.t.Helper()
	moved := try(f.ledger().Orders.Move(f.t.Context(), [][]dibs.Move{{m}})).must(f.t)
	if len(moved) != 1 || len(moved[0]) != 1 {
		f.t.Fatalf("one move has the results %v", moved)
	}
	return moved[0][0]
}

// moves makes one move that has to succeed. A later reading must find what the call
// returns.
func (f *fixture) moves(m dibs.Move) *dibs.Claim {
	f.t.Helper()
	got := f.move(m)
	if got.Err != nil || got.Replayed {
		f.t.Fatalf("the step %s of %s: replayed %v, error %v", m.Step, m.Position, got.Replayed, got.Err)
	}
	read := try(f.ledger().Claims.Claim(f.t.Context(), m.Position)).must(f.t)
	same(f.t, "the claim as it is read", lifeOf(read), lifeOf(got.Claim))
	return got.Claim
}

// lifeOf prints what happened to a claim. The text has everything that a step
// can change, so two claims with the same text are alike.
func lifeOf(c *dibs.Claim) string {
	s := fmt.Sprintf("%s restocked %v items %v", c.Status, c.Restocked, c.Items)
	if c.Payment != nil {
		s += fmt.Sprintf(" paid %+v", *c.Payment)
	}
	if c.Redemption != nil {
		s += fmt.Sprintf(" redeemed %s", c.Redemption.Ref)
	}
	if c.Shipment != nil {
		s += fmt.Sprintf(" shipped %+v", *c.Shipment)
	}
	for i := range c.Events {
		e := &c.Events[i]
		s += fmt.Sprintf("; %d %s %s %s %s %v", e.N, e.Step, e.Status, e.At.Format(time.RFC3339Nano), e.Ref, e.Restock)
	}
	return s
}

// refused checks that a move changes nothing. The shard's totals are compared
// before and after: a refusal must move no sum.
func (f *fixture) refused(what string, m dibs.Move, want error) {
	f.t.Helper()
	before := f.totals(m.Campaign, m.Position.Shard)
	wants(f.t, what, f.move(m).Err, want)
	same(f.t, what+": the totals", f.totals(m.Campaign, m.Position.Shard), before)
}

// released lists the claims that the outbox's commands release. Each release is
// in a command of its own shard.
func (f *fixture) released(l ledger.Ledger) []dibs.Position {
	f.t.Helper()
	var all []dibs.Position
	for after := int64(0); ; {
		cmds := try(l.Live.Commands(f.t.Context(), after, 100)).must(f.t)
		if len(cmds) == 0 {
			return all
		}
		for _, cmd := range cmds {
			after = cmd.ID
			for _, r := range cmd.Releases {
				same(f.t, "the shard of a release", r.Claim.ShardID, cmd.Shard)
				all = append(all, r.Claim)
			}
		}
	}
}

// paid are the facts of a payment or a refund.
func paid(ref string, amount int64) dibs.EventFacts {
	return dibs.EventFacts{Ref: ref, Amount: &dibs.Money{Amount: amount, Currency: "CNY"}}
}

// testLivesConfirm confirms a claim by a payment, once by its ref. The amount
// must be the price, the sums follow the status, and neither a second payment
// nor a cancel changes a paid claim. Payment providers repeat notices and
// deliver them in any order. A second payment by another ref is refused, so
// that the merchant refunds it.
func testLivesConfirm(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 10))
	p := s.grant("u1", 2)
	// Granted, but not settled yet: the caller has to wait for the ledger.
	f.refused("a claim on its way", step(c, p, dibs.StepConfirm, paid("p1", 1000)), dibs.ErrNotFound)
	f.settle(s)
	f.refused("another amount", step(c, p, dibs.StepConfirm, paid("p1", 999)), dibs.ErrInvalid)
	f.refused("no amount", step(c, p, dibs.StepConfirm, dibs.EventFacts{Ref: "p1"}), dibs.ErrInvalid)
	other := paid("p1", 1000)
	other.Amount.Currency = "USD"
	f.refused("another currency", step(c, p, dibs.StepConfirm, other), dibs.ErrInvalid)

	claim := f.moves(step(c, p, dibs.StepConfirm, paid("p1", 1000)))
	same(t, "the status", claim.Status, dibs.Confirmed)
	same(t, "the payment", *claim.Payment, dibs.Payment{
		Ref: "p1", Amount: dibs.Money{Amount: 1000, Currency: "CNY"}, At: start.Add(5 * time.Minute),
	})
	want := live.ShardTotals{Position: p.Cursor, Epoch: p.Epoch, Stock: 10, StockLeft: 8, Confirmed: 2}
	same(t, "the totals", f.totals(c, 0), want)
	// The ref is known, so this is the same notice once more.
	again := f.move(step(c, p, dibs.StepConfirm, paid("p1", 1000)))
	same(t, "the same payment again", again.Err, error(nil))
	same(t, "it is a repeat", again.Replayed, true)
	f.refused("another payment", step(c, p, dibs.StepConfirm, paid("p2", 1000)), dibs.ErrInvalidState)
	f.refused("a cancel of a paid claim", step(c, p, dibs.StepCancel, dibs.EventFacts{}), dibs.ErrInvalidState)
	same(t, "the totals after refusals", f.totals(c, 0), want)

	// A shipment is recorded once by what it says, and moves no stock.
	ship := step(c, p, dibs.StepShip, dibs.EventFacts{Carrier: "SF", TrackingNo: "1"})
	f.moves(ship)
	same(t, "the same shipment again", f.move(ship).Replayed, true)
	a := f.clean(c)
	same(t, "paid by the audit", a.Paid, int64(1000))
	same(t, "commands", a.Waiting, int64(0))
}

// testLivesRelease cancels a claim: its stock goes back at once, with one
// command that tells the engine, and the engine's own entry of it moves
// nothing. A payment that comes later is due back, and a refund settles that.
// The ledger moves first and commands the engine in the same transaction: a
// crash in between sells nothing twice.
func testLivesRelease(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 10))
	p, q := s.grant("u1", 2), s.grant("u2", 3)
	f.settle(s)
	// To another user the claim does not exist.
	strange := step(c, p, dibs.StepCancel, dibs.EventFacts{})
	strange.UserID = "u2"
	f.refused("a cancel by another user", strange, dibs.ErrNotFound)
	mine := step(c, p, dibs.StepCancel, dibs.EventFacts{Ref: "r"})
	mine.UserID = "u1"
	same(t, "the status", f.moves(mine).Status, dibs.Released)
	same(t, "the same cancel again", f.move(mine).Replayed, true)
	f.refused("another cancel", step(c, p, dibs.StepCancel, dibs.EventFacts{}), dibs.ErrInvalidState)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: q.Cursor, Epoch: p.Epoch, Stock: 10, StockLeft: 7, Pending: 3, Released: 2,
	})
	cmds := f.commands()
	same(t, "commands", len(cmds), 1)
	same(t, "the command's releases", cmds[0].Releases, []dibs.Release{{Claim: p, Epoch: p.Epoch}})

	// The engine's entry of the release moves nothing.
	// Counted again here, the stock would come back twice.
	s.release(p.Cursor, 2)
	f.settle(s)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(7))

	// The caller decides what to do with a late payment: claim anew, or refund it.
	f.refused("a payment of a released claim", step(c, p, dibs.StepConfirm, paid("p1", 1000)), dibs.ErrLatePayment)
	claim := f.moves(step(c, p, dibs.StepRefundDue, paid("p1", 1000)))
	same(t, "the payment is due", claim.Payment.Due, true)
	same(t, "the status", claim.Status, dibs.Released)
	same(t, "the same payment again", f.move(step(c, p, dibs.StepConfirm, paid("p1", 1000))).Replayed, true)
	same(t, "due by the audit", f.clean(c).Due, int64(1000))
	f.refused("a restock of it", step(c, p, dibs.StepRefund, dibs.EventFacts{Restock: true}), dibs.ErrInvalidState)
	claim = f.moves(step(c, p, dibs.StepRefund, dibs.EventFacts{}))
	same(t, "the payment is due after the refund", claim.Payment.Due, false)
	same(t, "due by the audit", f.clean(c).Due, int64(0))
}

// testLivesItems releases claims of items: the claim loses them, the next claim
// may have them, and a load knows which are free and which holdings are
// released. An item is the next owner's alone: the former claim must not show
// its code.
func testLivesItems(t *testing.T, f *fixture) {
	c := unpaid("c", 0)
	_, s := f.loaded(c, values("v", 6)...)
	p, q := s.grant("u1", 2, 0, 3), s.grant("u2", 1, 1)
	f.settle(s)
	same(t, "the items of a paid claim", f.moves(step(c, q, dibs.StepConfirm, paid("p", 500))).Items, []string{"v-1"})
	same(t, "the items of a released claim", len(f.moves(step(c, p, dibs.StepCancel, dibs.EventFacts{})).Items), 0)
	f.clean(c)
	// The engine may grant them again.
	s.release(p.Cursor, 2)
	r := s.grant("u3", 2, 3, 4)
	f.settle(s)
	got := try(f.ledger().Claims.Claim(t.Context(), r)).must(t)
	same(t, "the items of the next owner", got.Items, []string{"v-3", "v-4"})
	refund := step(c, q, dibs.StepRefund, dibs.EventFacts{Restock: true})
	same(t, "the items of a refunded claim", len(f.moves(refund).Items), 0)
	// Items 0, 1 and 3 came back; 3 and 4 are u3's; 2 and 5 were never granted.
	load, _ := f.load(c, 0)
	same(t, "the free items", load.FreeItems, []uint32{0, 1, 2, 5})
	same(t, "the holdings that are released", []bool{load.Holdings[0].Released, load.Holdings[1].Released, load.Holdings[2].Released},
		[]bool{true, true, false})
	f.clean(c)
}

// testLivesExpire expires claims from their deadline on, not a millisecond
// earlier, as many as asked for. Paid claims and claims without a deadline
// stay. A claim that expires too early is taken from a user who may still pay
// for it.
func testLivesExpire(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 100))
	free := f.insert(campaign("free", 10))
	var at []dibs.Position
	for i := range 10 {
		at = append(at, s.grant(fmt.Sprint("u", i), 1))
	}
	_, other := f.load(free, 0)
	kept := other.grant("u", 1)
	f.settle(s, other)
	// A paid claim has a deadline too, and must not be swept.
	f.moves(step(c, at[4], dibs.StepConfirm, paid("p", 500)))
	expire := func(now time.Time, max, want int) {
		t.Helper()
		same(t, "claims that expired", try(f.ledger().Orders.Expire(t.Context(), now, max)).must(t), want)
	}
	deadline := start.Add(15 * time.Minute)
	// Not yet; then four of nine; then the rest; then nothing more.
	expire(deadline.Add(-time.Millisecond), 100, 0)
	expire(deadline, 4, 4)
	expire(deadline, 100, 5)
	expire(deadline.Add(time.Hour), 100, 0)
	claim := try(f.ledger().Claims.Claim(t.Context(), at[0])).must(t)
	same(t, "the status", claim.Status, dibs.Released)
	same(t, "the event", claim.Events[0].Step, dibs.StepExpire)
	claim = try(f.ledger().Claims.Claim(t.Context(), kept)).must(t)
	same(t, "the status of a claim without a deadline", claim.Status, dibs.Confirmed)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: at[9].Cursor, Epoch: at[9].Epoch, Stock: 100, StockLeft: 99, Confirmed: 1, Released: 9,
	})
	same(t, "releases", len(f.released(f.ledger())), 9)
	f.refused("an expiry of a paid claim", step(c, at[4], dibs.StepExpire, dibs.EventFacts{}), dibs.ErrInvalidState)
	f.clean(c)
}

// testLivesExpireRace lets several nodes sweep the same claims: each falls to
// one of them. Nodes sweep without a lease. A claim that two of them release
// gives its stock back twice, and sends two commands.
func testLivesExpireRace(t *testing.T, f *fixture) {
	c, s := f.loaded(unpaid("c", 1000))
	for i := range 600 {
		s.grant(fmt.Sprint("u", i), 1)
	}
	f.settle(s)
	ledgers := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	var sum atomic.Int64
	// Each sweeps 70 at a time until nothing is pending.
	f.together(len(ledgers), func(i int) error {
		for {
			n, err := ledgers[i].Orders.Expire(t.Context(), start.Add(time.Hour), 70)
			sum.Add(int64(n))
			left, totalsErr := ledgers[i].Live.Totals(t.Context(), dibs.ShardID{Campaign: c.Number})
			if err = errors.Join(err, totalsErr); err != nil || left.Pending == 0 {
				return err
			}
		}
	})
	same(t, "claims that expired", sum.Load(), 600)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(1000))
	seen := map[dibs.Position]bool{}
	for _, p := range f.released(f.ledger()) {
		if seen[p] {
			t.Errorf("the claim %s is released twice", p)
		}
		seen[p] = true
	}
	same(t, "releases", len(seen), 600)
	f.clean(c)
}
