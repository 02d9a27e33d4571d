package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/node"
)

// packet is the spec of a red packet that is open for an hour.
func (r *rig) packet(id, sender string, total, count int64) dibs.CampaignSpec {
	return dibs.CampaignSpec{
		ID: id, Kind: dibs.RedPacket, Title: id, StartsAt: r.now().Add(-time.Minute), EndsAt: r.now().Add(time.Hour), SenderID: sender,
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: total, Currency: "CNY"}, Count: count}},
	}
}

func (r *rig) deposit(user, ref string, amount int64) {
	r.Helper()
	if _, _, err := r.node.Service.Funds.Deposit(r.Context(), user, funds.DepositSpec{Amount: dibs.Money{Amount: amount, Currency: "CNY"}, Ref: ref}); err != nil {
		r.Fatal(err)
	}
}

// balance is what a user has, in fen.
func (r *rig) balance(user string) int64 {
	r.Helper()
	v, err := r.node.Service.Funds.Balance(r.Context(), user)
	if err != nil {
		r.Fatal(err)
	}
	if len(v.Balances) == 0 {
		return 0
	}
	return v.Balances[0].Amount
}

// A red packet is not stored when the shares that Config.Split made are not worth its
// total, or are not as many as it asks for.
func TestSharesAreWorthTheTotal(t *testing.T) {
	for says, shares := range map[string][]int64{
		"2 shares leave 1 of the total":  {5, 4},
		"2 shares leave -1 of the total": {5, 6},
		"1 shares leave 0 of the total":  {10},
	} {
		t.Run(says, func(t *testing.T) {
			r := newRig(t, node.ServiceConfig{Split: func(dibs.RedPacketSpec) ([]int64, error) { return shares, nil }})
			_, err := r.node.Service.Campaigns.Create(t.Context(), r.packet("rain", "", 10, 2))
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("shares of %d are answered by %v", shares, err)
			}
			_, err = r.node.Service.Live.Registry.Get(t.Context(), "rain")
			r.fails(err, dibs.NotFound)
		})
	}
}

func TestRedPacket(t *testing.T) {
	r := newRig(t, node.ServiceConfig{CreditEvery: 5 * time.Millisecond})
	ctx, svc := t.Context(), r.node.Service
	spec := r.packet("rain", "host", 10_000, 20)
	if _, err := svc.Campaigns.Create(ctx, spec); err != nil {
		t.Fatal(err)
	}
	r.deposit("host", "d", 9_999)
	_, err := svc.Campaigns.Publish(ctx, "rain")
	r.fails(err, dibs.InsufficientFunds)
	r.wants(dibs.NotFound, "rain", "u0", "k")
	r.deposit("host", "d2", 2)
	if _, err := svc.Campaigns.Publish(ctx, "rain"); err != nil {
		t.Fatal(err)
	}
	if got := r.balance("host"); got != 1 {
		t.Errorf("the sender has %d left", got)
	}
	want := map[string]int64{}
	sum := int64(0)
	for i := range 12 {
		user := fmt.Sprint("u", i)
		c := r.wants(dibs.Granted, "rain", user, "k").Claim
		if len(c.Items) != 1 || c.Amount == nil || c.Amount.Amount < 1 {
			t.Fatalf("a share is %v, %v", c.Items, c.Amount)
		}
		want[user] = c.Amount.Amount
		sum += c.Amount.Amount
		again := r.wants(dibs.Granted, "rain", user, "k")
		if !again.Replayed || *again.Claim.Amount != *c.Amount || again.Claim.Items[0] != c.Items[0] {
			t.Errorf("the repeat is %+v", again.Claim)
		}
		r.wants(dibs.LimitReached, "rain", user, "another")
		r.find(c.ID, dibs.Confirmed)
	}
	r.eventually("the shares are credited", func() bool { return r.stats("rain").Funds.Credited.Amount == sum })
	for user, amount := range want {
		if got := r.balance(user); got != amount {
			t.Errorf("%s has %d, and claimed %d", user, got, amount)
		}
	}
	claim := r.claim("rain", "u0", "k", 1).Claim
	_, _, err = svc.Orders.Refund(ctx, claim.ID, dibs.RefundSpec{}, "r")
	r.fails(err, dibs.InvalidState)
	_, err = svc.Campaigns.ChangeStock(ctx, "rain", dibs.StockChange{Delta: 1}, "")
	r.fails(err, dibs.InvalidState)

	if _, err := svc.Campaigns.End(ctx, "rain"); err != nil {
		t.Fatal(err)
	}
	r.eventually("the rest is with the sender", func() bool { return r.balance("host") == 1+10_000-sum })
	r.wants(dibs.Ended, "rain", "late", "k")
	if f := r.stats("rain").Funds; f.Escrow.Amount != 0 || f.Returned.Amount != 10_000-sum || f.ReturnedAt == nil {
		t.Errorf("the funds at the end: %+v", f)
	}
	r.verify()
}

// TestRedPacketWindow lets the end come by itself, while the service is down:
// the next start brings the rest home.
func TestRedPacketWindow(t *testing.T) {
	r := newRig(t, node.ServiceConfig{CreditEvery: 5 * time.Millisecond})
	r.deposit("host", "d", 1_000)
	r.publish(r.packet("rain", "host", 1_000, 10))
	a := r.wants(dibs.Granted, "rain", "ann", "k").Claim.Amount.Amount
	r.close()
	r.pass(2 * time.Hour)
	r.open()
	r.eventually("the rest is with the sender", func() bool { return r.balance("host") == 1_000-a })
	if got := r.balance("ann"); got != a {
		t.Errorf("ann has %d, and claimed %d", got, a)
	}
	ends := r.now().Add(time.Hour)
	_, err := r.node.Service.Campaigns.Patch(r.Context(), "rain", dibs.CampaignPatch{EndsAt: &ends})
	r.fails(err, dibs.InvalidState)
	r.verify()
}

// TestRedPacketRace ends a red packet while all grab: what was said to be
// granted is credited, and the rest is back, to the fen.
func TestRedPacketRace(t *testing.T) {
	r := newRig(t, node.ServiceConfig{CreditEvery: time.Millisecond, SettleEvery: time.Millisecond})
	const total, count = 1_000_000, 6_000
	r.deposit("host", "d", total)
	r.publish(r.packet("rain", "host", total, count))
	sums := make(chan int64)
	for w := range 8 {
		go func() {
			sum := int64(0)
			for i := 0; ; i++ {
				res, err := r.node.Service.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "rain", UserID: fmt.Sprintf("u%d-%d", w, i)})
				if err != nil || res.Outcome != dibs.Granted {
					if err != nil || res.Outcome != dibs.Ended && res.Outcome != dibs.SoldOut {
						t.Errorf("the claim is %v, %v", res.Outcome, err)
					}
					break
				}
				sum += res.Claim.Amount.Amount
			}
			sums <- sum
		}()
	}
	r.eventually("some are granted", func() bool { return r.stats("rain").Granted > 200 })
	if _, err := r.node.Service.Campaigns.End(t.Context(), "rain"); err != nil {
		t.Fatal(err)
	}
	granted := int64(0)
	for range 8 {
		granted += <-sums
	}
	r.eventually("the rest is with the sender", func() bool { return r.stats("rain").Funds.ReturnedAt != nil })
	if f := r.stats("rain").Funds; f.Credited.Amount != granted || r.balance("host") != total-granted {
		t.Errorf("granted %d, the funds are %+v, the sender has %d", granted, f, r.balance("host"))
	}
	r.verify()
}
