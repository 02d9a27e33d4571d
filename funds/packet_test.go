package funds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// A red packet is not stored when the shares that Config.Split made are not worth its
// total, or are not as many as it asks for.
func TestSharesAreWorthTheTotal(t *testing.T) {
	for says, shares := range map[string][]int64{
		"2 shares leave 1 of the total":  {5, 4},
		"2 shares leave -1 of the total": {5, 6},
		"1 shares leave 0 of the total":  {10},
	} {
		t.Run(says, func(t *testing.T) {
			r := testnode.New(t, node.ServiceConfig{Split: func(dibs.RedPacketSpec) ([]int64, error) { return shares, nil }})
			_, err := r.Node.Campaigns.Create(t.Context(), r.Packet("rain", "", 10, 2))
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("shares of %d are answered by %v", shares, err)
			}
			_, err = r.Node.Live.Registry.Get(t.Context(), "rain")
			r.Fails(err, dibs.NotFound)
		})
	}
}

func TestRedPacket(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{CreditEvery: 5 * time.Millisecond})
	ctx, svc := t.Context(), r.Node.Service
	spec := r.Packet("rain", "host", 10_000, 20)
	if _, err := svc.Campaigns.Create(ctx, spec); err != nil {
		t.Fatal(err)
	}
	r.Deposit("host", "d", 9_999)
	_, err := svc.Campaigns.Publish(ctx, "rain")
	r.Fails(err, dibs.InsufficientFunds)
	r.Wants(dibs.NotFound, "rain", "u0", "k")
	r.Deposit("host", "d2", 2)
	if _, err := svc.Campaigns.Publish(ctx, "rain"); err != nil {
		t.Fatal(err)
	}
	if got := r.Balance("host"); got != 1 {
		t.Errorf("the sender has %d left", got)
	}
	want := map[string]int64{}
	sum := int64(0)
	for i := range 12 {
		user := fmt.Sprint("u", i)
		c := r.Wants(dibs.Granted, "rain", user, "k").Claim
		if len(c.Items) != 1 || c.Amount == nil || c.Amount.Amount < 1 {
			t.Fatalf("a share is %v, %v", c.Items, c.Amount)
		}
		want[user] = c.Amount.Amount
		sum += c.Amount.Amount
		again := r.Wants(dibs.Granted, "rain", user, "k")
		if !again.Replayed || *again.Claim.Amount != *c.Amount || again.Claim.Items[0] != c.Items[0] {
			t.Errorf("the repeat is %+v", again.Claim)
		}
		r.Wants(dibs.LimitReached, "rain", user, "another")
		r.Find(c.ID, dibs.Confirmed)
	}
	r.Eventually("the shares are credited", func() bool { return r.Stats("rain").Funds.Credited.Amount == sum })
	for user, amount := range want {
		if got := r.Balance(user); got != amount {
			t.Errorf("%s has %d, and claimed %d", user, got, amount)
		}
	}
	claim := r.Claim("rain", "u0", "k", 1).Claim
	_, _, err = svc.Orders.Refund(ctx, claim.ID, dibs.RefundSpec{}, "r")
	r.Fails(err, dibs.InvalidState)
	_, err = svc.Campaigns.ChangeStock(ctx, "rain", dibs.StockChange{Delta: 1}, "")
	r.Fails(err, dibs.InvalidState)

	if _, err := svc.Campaigns.End(ctx, "rain"); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the rest is with the sender", func() bool { return r.Balance("host") == 1+10_000-sum })
	r.Wants(dibs.Ended, "rain", "late", "k")
	if f := r.Stats("rain").Funds; f.Escrow.Amount != 0 || f.Returned.Amount != 10_000-sum || f.ReturnedAt == nil {
		t.Errorf("the funds at the end: %+v", f)
	}
	r.Verify()
}

// TestRedPacketWindow lets the end come by itself, while the service is down:
// the next start brings the rest home.
func TestRedPacketWindow(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{CreditEvery: 5 * time.Millisecond})
	r.Deposit("host", "d", 1_000)
	r.Publish(r.Packet("rain", "host", 1_000, 10))
	a := r.Wants(dibs.Granted, "rain", "ann", "k").Claim.Amount.Amount
	r.Close()
	r.Pass(2 * time.Hour)
	r.Open()
	r.Eventually("the rest is with the sender", func() bool { return r.Balance("host") == 1_000-a })
	if got := r.Balance("ann"); got != a {
		t.Errorf("ann has %d, and claimed %d", got, a)
	}
	ends := r.Now().Add(time.Hour)
	_, err := r.Node.Campaigns.Patch(r.Context(), "rain", dibs.CampaignPatch{EndsAt: &ends})
	r.Fails(err, dibs.InvalidState)
	r.Verify()
}

// TestRedPacketRace ends a red packet while all grab: what was said to be
// granted is credited, and the rest is back, to the fen.
func TestRedPacketRace(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{CreditEvery: time.Millisecond, SettleEvery: time.Millisecond})
	const total, count = 1_000_000, 6_000
	r.Deposit("host", "d", total)
	r.Publish(r.Packet("rain", "host", total, count))
	sums := make(chan int64)
	for w := range 8 {
		go func() {
			sum := int64(0)
			for i := 0; ; i++ {
				res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "rain", UserID: fmt.Sprintf("u%d-%d", w, i)})
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
	r.Eventually("some are granted", func() bool { return r.Stats("rain").Granted > 200 })
	if _, err := r.Node.Campaigns.End(t.Context(), "rain"); err != nil {
		t.Fatal(err)
	}
	granted := int64(0)
	for range 8 {
		granted += <-sums
	}
	r.Eventually("the rest is with the sender", func() bool { return r.Stats("rain").Funds.ReturnedAt != nil })
	if f := r.Stats("rain").Funds; f.Credited.Amount != granted || r.Balance("host") != total-granted {
		t.Errorf("granted %d, the funds are %+v, the sender has %d", granted, f, r.Balance("host"))
	}
	r.Verify()
}
