package redisengine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// sharing publishes a campaign of product p whose limit per product is 2.
func (f *fleet) sharing(id string, shards int) {
	f.Helper()
	units, product, perUser, perProduct := int64(1000), "p", int64(100), int64(2)
	n := f.nodes[0]
	_, err := n.Campaigns.Create(f.Context(), dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, ProductID: &product, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(100 * time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &perUser, LimitPerProduct: &perProduct, Shards: &shards,
	})
	must(f, err)
	_, err = n.Campaigns.Publish(f.Context(), id)
	must(f, err)
}

// Several nodes decide on campaigns of several shards that share a limit: it holds under
// load, after Redis has lost all it had, and once a campaign is over.
func TestNodesShareALimitPerProduct(t *testing.T) {
	f := newFleet(t, 0)
	var ahead atomic.Int64
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	f.join()
	f.join()
	_, err := f.nodes[0].Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "Phone"})
	must(t, err)
	f.sharing("noon", 3)
	f.sharing("night", 3)
	const users = 30
	claim := func(ctx context.Context, i int, key string) (dibs.Reason, error) {
		res, err := f.nodes[i%2].Claims.Claim(ctx, dibs.ClaimRequest{CampaignID: []string{"noon", "night"}[i/2%2], UserID: fmt.Sprint("u", i%users), Key: key})
		return res.Outcome, err
	}
	var granted [users]atomic.Int64
	var all sync.WaitGroup
	for i := range 12 * users {
		all.Go(func() {
			reason, err := claim(t.Context(), i, fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			} else if reason == dibs.Granted {
				granted[i%users].Add(1)
			}
		})
	}
	all.Wait()
	for user := range granted {
		if n := granted[user].Load(); n != 2 {
			t.Errorf("user %d was granted %d, want 2", user, n)
		}
	}
	// refused waits until every user is refused on every campaign: nothing is granted
	// while a campaign is loaded.
	refused := func(what string, campaigns ...string) {
		t.Helper()
		for user := range users {
			for _, campaign := range campaigns {
				f.until(what, func() bool {
					res, err := f.nodes[user%2].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: campaign, UserID: fmt.Sprint("u", user), Key: "more"})
					if err == nil && (res.Outcome != dibs.LimitReached || !res.OfProduct) {
						t.Fatalf("%s: user %d of %s: %s", what, user, campaign, res.Outcome)
					}
					return err == nil
				})
			}
		}
	}
	refused("both are live", "noon", "night")
	f.verify()
	redisDo(t, f, "FLUSHALL")
	refused("Redis was emptied", "noon", "night")

	_, err = f.nodes[0].Campaigns.End(t.Context(), "noon")
	must(t, err)
	ahead.Add(int64(10*time.Minute + time.Second))
	gone := func() bool { return !f.nodes[0].Live.Registry.Holds("noon") && !f.nodes[1].Live.Registry.Holds("noon") }
	f.until("noon leaves the engine", gone)
	refused("noon has left", "night")
	redisDo(t, f, "FLUSHALL")
	refused("Redis was emptied, and noon is over", "night")
	f.until("noon leaves the engine again", gone)
	f.sharing("later", 3)
	refused("a campaign that opened later", "night", "later")
	f.verify()
}

// TestLedgerWithoutACampaignOfAProduct restores a ledger of before a campaign with a limit per
// product, whose keys in Redis are named by the product. No node starts: the next campaign would
// get the number, and the claims of the forgotten one with it.
func TestLedgerWithoutACampaignOfAProduct(t *testing.T) {
	f := newFleet(t, 1)
	n := f.nodes[0]
	_, err := n.Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "Phone"})
	must(t, err)
	dump := f.dumpLedger()
	f.sharing("forgotten", 1)
	f.wants(n, dibs.Granted, "forgotten", "ann", "k")
	n.close(t)
	f.putBack(dump)
	for range 2 {
		started, err := node.Open(t.Context(), node.Config{Engine: f.redis.URL(), Ledger: f.ledger, LedgerTimeout: ledgerTime})
		if err == nil {
			must(t, started.Close(t.Context()))
		}
		if err == nil || !strings.Contains(err.Error(), "the journal has shard 1/0") {
			t.Errorf("a node starts over a campaign that its ledger does not have: %v", err)
		}
	}
}

// A draft that was restocked gets a limit per product after that: it is opened as one of the product all the same.
func TestARestockedDraftGetsALimitPerProduct(t *testing.T) {
	f := newFleet(t, 1)
	n := f.nodes[0]
	_, err := n.Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "Phone"})
	must(t, err)
	units, product, perUser, perProduct := int64(10), "p", int64(100), int64(2)
	_, err = n.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "noon", Kind: dibs.Sale, Title: "noon", ProductID: &product, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Limit: &perUser,
	})
	must(t, err)
	_, err = n.Campaigns.ChangeStock(t.Context(), "noon", dibs.StockChange{Delta: 5}, "")
	must(t, err)
	_, err = n.Campaigns.Patch(t.Context(), "noon", dibs.CampaignPatch{LimitPerProduct: &perProduct})
	must(t, err)
	_, err = n.Campaigns.Publish(t.Context(), "noon")
	must(t, err)
	for i, want := range []dibs.Reason{dibs.Granted, dibs.Granted, dibs.LimitReached} {
		f.wants(n, want, "noon", "ann", fmt.Sprint("k", i))
	}
	f.verify()
}
