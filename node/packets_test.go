package node_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/funds"
)

// TestARedPacketOverTwoDeployments has users grab all shares of a red packet whose shards are on both of two
// servers: each share is given once, all of them sum to the total, and each user is credited with theirs.
func TestARedPacketOverTwoDeployments(t *testing.T) {
	s := newSeveral(t, 2)
	s.open(0, 1)
	const total, count, shards = 54_321, 60, 6
	sum := dibs.Money{Amount: total, Currency: "CNY"}
	if _, _, err := s.node.Funds.Deposit(t.Context(), "host", funds.DepositSpec{Amount: sum, Ref: "d"}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	on := s.publishOver(dibs.CampaignSpec{
		ID: "rain", Kind: dibs.RedPacket, Title: "Rain", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour), SenderID: "host",
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: sum, Count: count}}, Shards: new(shards),
	})
	if on[1] == 0 || on[2] == 0 {
		t.Fatalf("the shards are on %v", on)
	}
	shares, amounts, given, users := map[string]string{}, map[string]int64{}, int64(0), 0
	s.until("all is given", func() bool {
		user := fmt.Sprint("user-", users)
		r, err := s.claim("rain", user)
		if errors.Is(err, dibs.ErrOverloaded) || errors.Is(err, dibs.ErrUnavailable) {
			// The same user asks again, and finds the share if there is one.
			return false
		}
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		users++
		if r.Outcome != dibs.Granted {
			return r.Outcome == dibs.SoldOut
		}
		share := r.Claim.Items[0]
		if other, twice := shares[share]; twice {
			t.Fatalf("share %s is %s's and %s's", share, other, user)
		}
		shares[share], amounts[user] = user, r.Claim.Amount.Amount
		given += r.Claim.Amount.Amount
		return false
	})
	if len(shares) != count || given != total {
		t.Errorf("%d shares of %d together were given; want %d of %d", len(shares), given, count, total)
	}
	s.whole()
	s.until("the shares are credited", func() bool {
		st, err := s.node.Stats(t.Context(), "rain")
		return err == nil && st.Funds.Credited.Amount == total
	})
	for user, amount := range amounts {
		if v, err := s.node.Funds.Balance(t.Context(), user); err != nil || len(v.Balances) != 1 || v.Balances[0].Amount != amount {
			t.Errorf("%s has %+v, %v, and was told %d", user, v.Balances, err, amount)
		}
	}
}
