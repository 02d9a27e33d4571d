package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/funds"
)

const (
	packetShares = 600
	packetTotal  = 60_000
)

// TestRedPacketKilled kills the server while shares are grabbed and credited, and
// in every other round while the red packet is being ended. Each share that was
// answered is its user's, once; the rest is the sender's, once; and verify
// finds nothing.
func TestRedPacketKilled(t *testing.T) { killPackets(t, "", (rounds(t)+4)/7) }

func killPackets(t *testing.T, ledger string, n int) {
	seed := killSeed(t)
	t.Logf("seed %d, %d rounds", seed, n)
	c := &crashes{t: t, r: rand.New(rand.NewPCG(seed, 0)), data: t.TempDir(), ledger: ledger}
	c.restart()
	deposit := funds.DepositSpec{Amount: dibs.Money{Amount: int64(n) * packetTotal, Currency: "CNY"}, Ref: "d"}
	if _, _, err := clitest.Admin(t, c.url).Accounts.Deposit(t.Context(), "host", deposit); err != nil {
		t.Fatal(err)
	}
	credited := int64(0)
	for i := range n {
		id := fmt.Sprintf("rain-%d", i)
		presses := c.packetRound(id, i%2 == 1)
		credited += c.checkPacket(id, presses)
		if t.Failed() {
			t.Fatalf("after round %d of seed %d", i+1, seed)
		}
	}
	if got := accountOf(t, clitest.Admin(t, c.url), "host"); got != deposit.Amount.Amount-credited {
		t.Errorf("the sender has %d of %d, %d were credited", got, deposit.Amount.Amount, credited)
	}
	c.server.signal(t, syscall.SIGTERM)
	if code := c.server.code(t); code != 0 {
		t.Errorf("exit code %d at the end", code)
	}
	execute(t, nil, append([]string{"verify", "--data", c.data}, c.where()...)...).Want(t, 0, fmt.Sprintf("every promise holds, campaigns verified: %d", n))
}

// packetRound publishes a red packet, lets users grab, and kills the server when
// enough was granted, or some was credited, or while it is being ended.
func (c *crashes) packetRound(id string, ending bool) []press {
	admin := clitest.Admin(c.t, c.url)
	_, err := admin.Campaigns.Create(c.t.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.RedPacket, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour), SenderID: "host",
		Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: packetTotal, Currency: "CNY"}, Count: packetShares}},
	}, "")
	if err == nil {
		_, err = admin.Campaigns.Publish(c.t.Context(), id)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	l := newLoader(c.url, &c.users, leastAnswered+c.r.Int64N(300), id)
	wait := l.begin(c.t.Context(), c.t)
	ended := make(chan error, 1)
	switch {
	case ending:
		// Whether it is answered, the kill decides.
		go func() {
			_, err := admin.Campaigns.End(c.t.Context(), id)
			ended <- err
		}()
		after := time.NewTimer(time.Duration(c.r.IntN(700)) * time.Millisecond)
		<-after.C
	default:
		ended <- nil
		c.packetUntil(admin, id, func(f *api.FundsView) bool { return f.Credited.Amount > 0 })
	}
	c.server.kill()
	wait()
	if err := <-ended; err != nil {
		c.t.Logf("the end was cut off: %v", err)
	}
	c.restart()
	return l.presses
}

// packetUntil waits for what becomes of a red packet's money.
func (c *crashes) packetUntil(admin *client.Client, id string, holds func(*api.FundsView) bool) *api.FundsView {
	c.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(clitest.Patience); ; <-tick.C {
		st, err := admin.Campaigns.Stats(c.t.Context(), id)
		if err != nil {
			c.t.Fatal(err)
		}
		if holds(st.Funds) {
			return st.Funds
		}
		if time.Now().After(until) {
			c.t.Fatalf("the funds of %s stay %+v", id, st.Funds)
		}
	}
}

// checkPacket ends a red packet, waits until it is closed, and compares what
// users were answered with what they have. It returns what was credited.
func (c *crashes) checkPacket(id string, presses []press) int64 {
	c.t.Helper()
	admin := clitest.Admin(c.t, c.url)
	if _, err := admin.Campaigns.End(c.t.Context(), id); err != nil {
		c.t.Fatal(err)
	}
	f := c.packetUntil(admin, id, func(f *api.FundsView) bool { return f.ReturnedAt != nil })
	if f.Credited.Amount+f.Returned.Amount != packetTotal || f.Escrow.Amount != 0 {
		c.t.Errorf("the funds of %s at the end: %+v", id, f)
	}
	sum := int64(0)
	for user := range claimsByUser(c.t, admin, id) {
		sum += accountOf(c.t, admin, user)
	}
	if sum != f.Credited.Amount {
		c.t.Errorf("%s credited %d, its users have %d", id, f.Credited.Amount, sum)
	}
	for _, p := range presses {
		if p.id == "" {
			continue
		}
		claim, err := admin.Orders.Get(c.t.Context(), p.id)
		if err != nil || claim.Amount == nil || claim.UserID != p.user || accountOf(c.t, admin, p.user) != claim.Amount.Amount {
			c.t.Errorf("%s was granted %s of %s, which is %+v, %v", p.user, p.id, id, claim, err)
		}
	}
	return f.Credited.Amount
}

// claimsByUser are a campaign's claims by their users, each of whom has one.
func claimsByUser(t *testing.T, admin *client.Client, campaign string) map[string]string {
	t.Helper()
	users := map[string]string{}
	for id, user := range claimsOf(t, admin, campaign) {
		if other, twice := users[user]; twice {
			t.Errorf("user %s has %s and %s", user, id, other)
		}
		users[user] = id
	}
	return users
}

// accountOf is what a user has, in fen.
func accountOf(t *testing.T, admin *client.Client, user string) int64 {
	t.Helper()
	v, err := admin.Accounts.Get(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Balances) == 0 {
		return 0
	}
	return v.Balances[0].Amount
}
