package testnode

import (
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/funds"
)

// PayWithin is how long a claim on an Unpaid sale may wait for its payment.
// Tests move the clock, so its length costs nothing.
const PayWithin = 15 * time.Minute

// Unpaid is the spec of a sale that has to be paid in time.
func (r *Rig) Unpaid(id string, units int64, late dibs.LatePayment) dibs.CampaignSpec {
	spec := r.Sale(id, units)
	within := dibs.Duration(PayWithin)
	spec.Price, spec.PayWithin, spec.LatePayment = &dibs.Money{Amount: 500, Currency: "CNY"}, &within, late
	return spec
}

// Payment is what a claim of one unit costs.
func Payment(ref string) dibs.PaymentSpec {
	return dibs.PaymentSpec{Amount: &dibs.Money{Amount: 500, Currency: "CNY"}, PaymentRef: ref}
}

// Confirm pays for a claim.
func (r *Rig) Confirm(id, ref string) (*dibs.Claim, bool) {
	r.Helper()
	c, replayed, err := r.Node.Orders.Confirm(r.Context(), id, Payment(ref))
	if err != nil {
		r.Fatalf("confirm %s by %s: %v", id, ref, err)
	}
	return c, replayed
}

// Find reads a claim that must have a status.
func (r *Rig) Find(id string, want dibs.Status) *dibs.Claim {
	r.Helper()
	c, err := r.Node.Claims.Find(r.Context(), id)
	must(r, err)
	if c.Status != want {
		r.Fatalf("the claim %s is %s, want %s", id, c.Status, want)
	}
	return c
}

// Expire lets the time to pay pass and waits until nothing is pending.
// It moves the clock for all campaigns of the node, not for this one alone.
func (r *Rig) Expire(campaign string) {
	r.Helper()
	r.Pass(PayWithin + time.Second)
	r.Eventually("unpaid claims expire", func() bool { st := r.Stats(campaign); return st.Pending == 0 && st.JournalBacklog == 0 })
}

// Packet is the spec of a red packet that is open for an hour.
// Amounts are in fen, a hundredth of a yuan.
func (r *Rig) Packet(id, sender string, total, count int64) dibs.CampaignSpec {
	return dibs.CampaignSpec{
		ID: id, Kind: dibs.RedPacket, Title: id, StartsAt: r.Now().Add(-time.Minute), EndsAt: r.Now().Add(time.Hour), SenderID: sender,
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: total, Currency: "CNY"}, Count: count}},
	}
}

// Deposit puts an amount, in fen, on a user's account.
func (r *Rig) Deposit(user, ref string, amount int64) {
	r.Helper()
	_, _, err := r.Node.Funds.Deposit(r.Context(), user, funds.DepositSpec{Amount: dibs.Money{Amount: amount, Currency: "CNY"}, Ref: ref})
	must(r, err)
}

// Balance is what a user has, in fen.
func (r *Rig) Balance(user string) int64 {
	r.Helper()
	v, err := r.Node.Funds.Balance(r.Context(), user)
	must(r, err)
	if len(v.Balances) == 0 {
		return 0
	}
	return v.Balances[0].Amount
}

// ChangeStock changes a campaign's stock, which must not fail.
func (r *Rig) ChangeStock(campaign string, ch dibs.StockChange, ref string) *dibs.Campaign {
	r.Helper()
	c, err := r.Node.Campaigns.ChangeStock(r.Context(), campaign, ch, ref)
	must(r, err)
	return c
}
