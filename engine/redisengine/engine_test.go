package redisengine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/api"
)

// paidFleet is a fleet on Redis and MariaDB whose clock the test moves.
func paidFleet(t *testing.T, n int) (f *fleet, offset *atomic.Int64) {
	t.Helper()
	t.Cleanup(func() { must(t, servers.StopAll()) })
	_, url, _ := servers.Database(t, servers.MariaDB)
	offset = &atomic.Int64{}
	f = newFleet(t, 0)
	f.ledger = url
	f.tune.SweepEvery = 5 * time.Millisecond
	f.tune.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	for range n {
		f.join()
	}
	return f, offset
}

// sellUnpaid publishes a sale that has to be paid within a quarter of an hour.
func (f *fleet) sellUnpaid(id string, units int64) {
	f.Helper()
	now := time.Now()
	within := dibs.Duration(15 * time.Minute)
	_, err := f.nodes[0].Campaigns.Create(f.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 500, Currency: "CNY"}, PayWithin: &within,
	})
	must(f, err)
	_, err = f.nodes[0].Campaigns.Publish(f.Context(), id)
	must(f, err)
}

// settledWithin waits until a campaign has nothing pending and nothing on its
// way, as a node sees it.
func (f *fleet) settledWithin(n *member, id string) api.StatsView {
	f.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		st, err := n.Stats(f.Context(), id)
		must(f, err)
		waiting, err := n.ledger.Commands(f.Context(), 0, 1)
		must(f, err)
		if st.Pending == 0 && st.JournalBacklog == 0 && len(waiting) == 0 {
			return st
		}
		select {
		case <-tick.C:
		case <-limit.C:
			f.Fatalf("not settled within 20s: %+v", st)
		}
	}
}

// TestFleetLife: users of three nodes claim, pay, cancel, send everything
// twice and through other nodes, while every node sweeps and the clock jumps.
// Each unit is paid once or comes back once, and sells again.
func TestFleetLife(t *testing.T) {
	f, offset := paidFleet(t, 3)
	f.sellUnpaid("phones", 40)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var users sync.WaitGroup
	var granted atomic.Int64
	for u := range 12 {
		users.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(u)))
			for i := range 25 {
				if r.IntN(20) == 0 {
					offset.Add(int64(16 * time.Minute))
				}
				user, key := fmt.Sprintf("u%d-%d", u, i), "k"
				res, err := f.nodes[r.IntN(3)].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phones", UserID: user, Key: key})
				if err != nil {
					t.Error(err)
					return
				}
				if res.Outcome != dibs.Granted {
					continue
				}
				granted.Add(1)
				f.live(r, res.Claim.ID, user)
			}
		})
	}
	users.Wait()
	offset.Add(int64(16 * time.Minute))
	st := f.settledWithin(f.nodes[1], "phones")
	if granted.Load() < 40 || st.Granted+st.Remaining != 40 || st.Confirmed+st.Refunded < st.Granted {
		t.Errorf("%d granted: %+v", granted.Load(), st)
	}
	for _, n := range f.nodes {
		report, err := n.Audit.Verify(t.Context())
		if err != nil || !report.OK {
			t.Errorf("%+v, %v", report, err)
		}
	}
	t.Logf("%d granted; %+v", granted.Load(), st)
}

// live takes random steps of a claim through random nodes, twice each.
func (f *fleet) live(r *rand.Rand, id, user string) {
	paid := dibs.PaymentSpec{PaymentRef: "pay-" + id, Amount: &dibs.Money{Amount: 500, Currency: "CNY"}}
	var steps sync.WaitGroup
	choice := r.IntN(5)
	for range 2 {
		n := f.nodes[r.IntN(3)]
		steps.Go(func() {
			var err error
			switch choice {
			case 0:
				_, _, err = n.Orders.Cancel(f.Context(), id, user, "once")
			case 1, 2:
				var c *dibs.Claim
				c, _, err = n.Orders.Confirm(f.Context(), id, paid)
				if err == nil && choice == 2 {
					_, _, err = n.Orders.Refund(f.Context(), c.ID, dibs.RefundSpec{Restock: true}, "once")
				}
			default:
				// Nobody pays.
			}
			if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
				f.Errorf("a step of %s: %v", id, err)
			}
		})
	}
	steps.Wait()
}

// TestFleetLatePayment: a late payment takes stock again through a node that
// has not granted the claim, and after the campaign has left Redis.
func TestFleetLatePayment(t *testing.T) {
	f, offset := paidFleet(t, 2)
	f.sellUnpaid("phone", 1)
	id := f.wants(f.nodes[0], dibs.Granted, "phone", "ann", "k").Claim.ID
	offset.Add(int64(16 * time.Minute))
	f.settledWithin(f.nodes[1], "phone")
	// The deadline of what is taken again is by Redis' own clock.
	offset.Store(0)
	paid := dibs.PaymentSpec{PaymentRef: "pay-1", Amount: &dibs.Money{Amount: 500, Currency: "CNY"}}
	c, _, err := f.nodes[1].Orders.Confirm(t.Context(), id, paid)
	if err != nil || c.Status != dibs.Confirmed || c.Replaces != id {
		t.Fatalf("%+v, %v", c, err)
	}
	again, replayed, err := f.nodes[0].Orders.Confirm(t.Context(), id, paid)
	if err != nil || !replayed || again.ID != c.ID {
		t.Fatalf("%+v, %v, %v", again, replayed, err)
	}
	f.wants(f.nodes[1], dibs.SoldOut, "phone", "bob", "k")
	for _, n := range f.nodes {
		if report, err := n.Audit.Verify(t.Context()); err != nil || !report.OK {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

// A late payment that comes while Redis does not give its level is neither given
// stock nor flagged as due back: it is tried again, and finds its stock.
func TestLatePaymentWaitsForTheLevel(t *testing.T) {
	f, offset := newFleet(t, 0), &atomic.Int64{}
	f.tune.SweepEvery = 5 * time.Millisecond
	f.tune.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	n := f.join()
	f.sellUnpaid("phone", 1)
	id := f.wants(n, dibs.Granted, "phone", "ann", "k").Claim.ID
	offset.Add(int64(16 * time.Minute))
	f.settledWithin(n, "phone")
	offset.Store(0)
	redisDo(t, f, "CONFIG", "SET", "appendfsync", "everysec")
	f.until("refusals", func() bool {
		_, settings := n.engine.Abilities().Level()
		return len(wrongIn(settings)) > 0
	})
	paid := dibs.PaymentSpec{PaymentRef: "pay-1", Amount: &dibs.Money{Amount: 500, Currency: "CNY"}}
	c, _, err := n.Orders.Confirm(t.Context(), id, paid)
	if !errors.Is(err, dibs.ErrUnavailable) {
		t.Fatalf("the late payment is %+v, %v", c, err)
	}
	redisDo(t, f, "CONFIG", "SET", "appendfsync", "always")
	f.until("the payment's stock", func() bool {
		c, _, err = n.Orders.Confirm(t.Context(), id, paid)
		return err == nil
	})
	if c.Status != dibs.Confirmed || c.Replaces != id {
		t.Errorf("%+v", c)
	}
	f.verify()
}
