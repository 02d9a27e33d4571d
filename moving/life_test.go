package moving_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestPauseAndExtendOverShards: a campaign of several shards is paused, resumed, extended and
// ended on all of them, by its users of every shard and at every node.
func TestPauseAndExtendOverShards(t *testing.T) {
	f := newFleet(t, 2)
	c := f.publish("sale", 5, 10_000, 10_000)
	told := func(what string, want dibs.Reason) {
		t.Helper()
		for i, n := range f.nodes {
			for shard := range uint8(5) {
				user := usersOf(c, shard, 1)[0]
				for over := time.Now().Add(20 * time.Second); ; {
					r := f.claim(n, c, user, "", 1)
					if r.Outcome == want {
						break
					}
					if time.Now().After(over) {
						t.Fatalf("%s: at node %d a user of shard %d is told %v, not %v", what, i, shard, r.Outcome, want)
					}
					<-time.After(10 * time.Millisecond)
				}
			}
		}
	}
	granted := func() int64 {
		t.Helper()
		st, err := f.nodes[0].Stats(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return st.Granted
	}
	must := func(_ *dibs.Campaign, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	told("published", dibs.Granted)
	must(f.nodes[0].Campaigns.Pause(t.Context(), c.ID))
	told("paused", dibs.Paused)
	before := granted()
	told("still paused", dibs.Paused)
	if n := granted(); n != before {
		t.Errorf("%d were granted while it was paused", n-before)
	}
	must(f.nodes[1].Campaigns.Resume(t.Context(), c.ID))
	told("resumed", dibs.Granted)
	soon := time.Now().Add(2 * time.Second)
	must(f.nodes[0].Campaigns.Patch(t.Context(), c.ID, dibs.CampaignPatch{EndsAt: &soon}))
	told("over", dibs.Ended)
	later := time.Now().Add(time.Hour)
	must(f.nodes[1].Campaigns.Patch(t.Context(), c.ID, dibs.CampaignPatch{EndsAt: &later}))
	told("extended", dibs.Granted)
	must(f.nodes[0].Campaigns.End(t.Context(), c.ID))
	told("ended", dibs.Ended)
	f.whole(c, granted(), 10_000-granted())
}

// TestSixtyFourShards sells all units of the largest number of shards, fewer than ten on
// each, to more users than there are units.
func TestSixtyFourShards(t *testing.T) {
	f := newFleet(t, 2)
	const units = 500
	c := f.publish("sale", 64, units, 1)
	var all sync.WaitGroup
	var granted, soldOut atomic.Int64
	for i := range units + 100 {
		all.Go(func() {
			switch r := f.claim(f.nodes[i%2], c, fmt.Sprint("user-", i), "key", 1); r.Outcome {
			case dibs.Granted:
				granted.Add(1)
			case dibs.SoldOut:
				soldOut.Add(1)
			default:
				t.Errorf("user %d is told %v", i, r.Outcome)
			}
		})
	}
	all.Wait()
	if granted.Load() != units || soldOut.Load() != 100 {
		t.Errorf("%d granted and %d told that all is sold, want %d and 100", granted.Load(), soldOut.Load(), units)
	}
	f.whole(c, units, 0)
}

// TestSharedLimitWhileStockMoves: a sale and a coupon share a limit of two for a product, and
// only users of one shard come, so that their units come from the others. All units are
// sold, and no user has more than two of them.
func TestSharedLimitWhileStockMoves(t *testing.T) {
	f := newFleet(t, 2)
	if _, err := f.nodes[0].Products.Create(t.Context(), dibs.ProductSpec{ID: "p", Name: "Phone"}); err != nil {
		t.Fatal(err)
	}
	const units, users = 40, 60
	product, perProduct := "p", int64(2)
	var campaigns []*dibs.Campaign
	for _, kind := range []dibs.Kind{dibs.Sale, dibs.Coupon} {
		spec := sale(string(kind), 4, units, 2)
		spec.Kind, spec.ProductID, spec.LimitPerProduct = kind, &product, &perProduct
		campaigns = append(campaigns, f.publishSpec(spec))
	}
	one := usersOf(campaigns[0], 2, users)
	var has [users]atomic.Int64
	var all sync.WaitGroup
	for i, user := range one {
		for press := range 4 {
			all.Go(func() {
				r := f.claim(f.nodes[press%2], campaigns[(i+press/2)%2], user, fmt.Sprint("key-", press), 1)
				switch {
				case r.Outcome == dibs.Granted:
					has[i].Add(1)
				case r.Outcome != dibs.SoldOut && (r.Outcome != dibs.LimitReached || !r.OfProduct):
					t.Errorf("%s is told %v", user, r.Outcome)
				}
			})
		}
	}
	all.Wait()
	sold := int64(0)
	for i := range has {
		n := has[i].Load()
		if sold += n; n > perProduct {
			t.Errorf("%s has %d of a product, and the limit is %d", one[i], n, perProduct)
		}
	}
	if sold != 2*units {
		t.Errorf("%d of %d are sold to users who may have %d", sold, 2*units, users*perProduct)
	}
	if m := f.nodes[0].Moving.Metrics().Transfers + f.nodes[1].Moving.Metrics().Transfers; m < 6 {
		t.Errorf("%d transfers brought the units of three shards of two campaigns", m)
	}
	for _, c := range campaigns {
		f.whole(c, units, 0)
	}
}
