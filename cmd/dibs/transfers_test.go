package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// The sizes of a round: the users are of one shard, so that all units of the others have to
// be moved before they are sold.
const (
	movedShards, movedUnits   = 5, 40
	movedUsers, movedTogether = 50, 12
	// itemsEvery is how many rounds have one that gives items.
	itemsEvery = 3
	// failoverEvery is how many rounds have one failover: it takes a Cluster seconds. The
	// round failoverFirst has the first, so that a short run has one too.
	failoverEvery, failoverFirst = 25, 2
	// manyKills are so many that some meet a transfer.
	manyKills = 50
)

// transfers are nodes on a Cluster that move stock between shards while things go wrong.
type transfers struct {
	*cluster
	r       *rand.Rand
	servers *servers.Cluster
	faults  map[string]int
	// limited counts the claims that were refused by the limit.
	limited atomic.Int64
	// caught counts how often a node died while stock was on its way. Either node may have moved it.
	caught int
}

// TestTransfersKilled sells campaigns to users of one shard while a node is killed, a
// master is frozen for a while or lost for good, or a slot is moved: at whichever step of
// a transfer that happens, every unit is sold once, no yes is lost, and nothing is left on
// a shard. Each third campaign gives items, each of them once. Whoever has bought asks for a
// second unit, and gets none.
func TestTransfersKilled(t *testing.T) {
	seed := killSeed(t)
	t.Logf("DIBS_KILL_SEED=%d", seed)
	redis, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	x := &transfers{
		cluster: clusterAt(t, redis.URL(), "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"), 2, "--durability", dibs.LevelLedgered),
		r:       rand.New(rand.NewPCG(seed, 0)), servers: redis, faults: map[string]int{},
	}
	for n := range rounds(t) {
		if x.round(n); t.Failed() {
			t.Fatalf("round %d, after %v", n, x.faults)
		}
	}
	x.verify()
	x.drain()
	t.Logf("%d rounds, with %v; %d nodes died while stock was on its way; %d claims beyond the limit", rounds(t), x.faults, x.caught, x.limited.Load())
	if killed := x.faults["node killed"]; killed >= manyKills && x.caught == 0 {
		t.Errorf("%d nodes died, and none while stock was on its way", killed)
	}
	if x.limited.Load() == 0 {
		t.Error("no claim was refused by the limit")
	}
}

// round sells one campaign.
func (x *transfers) round(n int) {
	x.t.Helper()
	id, shards := "c"+strconv.Itoa(n), movedShards
	kind, stock := dibs.Sale, dibs.StockSpec{Units: new(int64(movedUnits))}
	if n%itemsEvery == 0 {
		kind, stock = dibs.Coupon, dibs.StockSpec{}
		for i := range movedUnits {
			stock.Items = append(stock.Items, fmt.Sprintf("%s-%d", id, i))
		}
	}
	eventually(x.t, clitest.Patience, id+" is published", func(ctx context.Context) bool {
		_, err := x.admin(n%2).Campaigns.Create(ctx, dibs.CampaignSpec{
			ID: id, Kind: kind, Title: id, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
			Stock: stock, Shards: &shards,
		}, "create-"+id)
		if err == nil {
			_, err = x.admin(n%2).Campaigns.Publish(ctx, id)
		}
		return err == nil
	})
	granted, sold, press := x.crowd(n, id)
	some := x.r.Int64N(movedUnits / 2)
	eventually(x.t, clitest.Patience, "some units are sold", func(context.Context) bool { return sold.Load() > some })
	x.fault(n)
	press.Wait()
	if len(granted) != movedUnits {
		x.t.Errorf("%d of %d units of %s are sold", len(granted), movedUnits, id)
	}
	x.same(id, granted)
	x.eachOnce(granted, len(stock.Items))
	if _, err := x.admin(n%2).Campaigns.End(x.t.Context(), id); err != nil {
		x.t.Errorf("the end of %s: %v", id, err)
	}
}

// crowd has users of one shard claim, each until the answer is final. granted has their
// claims by user once press is over; sold counts them meanwhile.
func (x *transfers) crowd(n int, id string) (granted map[string]api.ClaimView, sold *atomic.Int64, press *sync.WaitGroup) {
	c := dibs.Campaign{Shards: movedShards}
	granted, sold, press = map[string]api.ClaimView{}, &atomic.Int64{}, &sync.WaitGroup{}
	var mu sync.Mutex
	next := make(chan string)
	for i := range movedTogether {
		press.Go(func() {
			for user := range next {
				claim := x.buy(i, id, user)
				if claim.ID == "" {
					continue
				}
				mu.Lock()
				granted[user] = claim
				mu.Unlock()
				sold.Add(1)
				x.hasEnough(i, id, user)
			}
		})
	}
	press.Go(func() {
		defer close(next)
		for i, found := 0, 0; found < movedUsers; i++ {
			if user := fmt.Sprintf("%s-user-%d", id, i); int(c.ShardOf(user).Shard) == n%movedShards {
				next <- user
				found++
			}
		}
	})
	return granted, sold, press
}

// buy claims a unit until the answer is final, and returns the claim; empty when all is
// sold.
func (x *transfers) buy(i int, campaign, user string) api.ClaimView {
	claim, reason := x.insistOn(i, campaign, user, "key-"+user, 1)
	if claim.ID == "" && reason != dibs.SoldOut.String() {
		x.t.Errorf("the claim of %s: %s", user, reason)
	}
	return claim
}

// hasEnough asks for a second unit for a user who has one, which the limit forbids. Once all
// is sold, that is said first.
func (x *transfers) hasEnough(i int, campaign, user string) {
	switch id, reason := x.insist(i, campaign, user, "more-"+user, 1); reason {
	case dibs.LimitReached.String():
		x.limited.Add(1)
	case dibs.SoldOut.String():
	default:
		x.t.Errorf("%s has a unit and asks for another one: %s%s", user, id, reason)
	}
}

// eachOnce expects that each of so many items was given once; none where units were sold.
func (x *transfers) eachOnce(granted map[string]api.ClaimView, items int) {
	x.t.Helper()
	given := map[string]string{}
	for user, claim := range granted {
		for _, item := range claim.Items {
			if other, twice := given[item]; twice {
				x.t.Errorf("%s was given to %s and to %s", item, other, user)
			}
			given[item] = user
		}
	}
	if len(given) != items {
		x.t.Errorf("%d of %d items were given", len(given), items)
	}
}

// same repeats every claim that was granted: it is the same one at either node.
func (x *transfers) same(campaign string, granted map[string]api.ClaimView) {
	x.t.Helper()
	i := 0
	for user, claim := range granted {
		if again := x.buy(i, campaign, user); again.ID != claim.ID || !slices.Equal(again.Items, claim.Items) {
			x.t.Errorf("%s was granted %s with %v, and %q with %v when it was asked again", user, claim.ID, claim.Items, again.ID, again.Items)
		}
		i++
	}
}

// fault does something to a node or to Redis, and undoes it.
func (x *transfers) fault(n int) {
	x.t.Helper()
	must := func(err error) {
		x.t.Helper()
		if err != nil {
			x.t.Fatal(err)
		}
	}
	key := fmt.Sprintf("dibs:{%d:%d}:meta", n+1, x.r.IntN(movedShards))
	slot, master, err := x.servers.Owner(x.t.Context(), key)
	must(err)
	node := x.nodes[x.r.IntN(2)]
	what := []string{"node killed", "node killed", "node frozen", "master frozen", "slot moved"}[x.r.IntN(5)]
	if n%failoverEvery == failoverFirst {
		what = "master lost"
	}
	x.faults[what]++
	switch what {
	case "node killed":
		node.kill()
		if x.onItsWay(n) > 0 {
			x.caught++
		}
		x.start(node, "--durability", dibs.LevelLedgered)
	case "node frozen":
		node.signal(x.t, syscall.SIGSTOP)
		x.rest(1500)
		node.signal(x.t, syscall.SIGCONT)
	case "master frozen":
		// For less than the Cluster waits before it makes another one master.
		must(master.Freeze())
		x.rest(1000)
		must(master.Thaw())
	case "slot moved":
		to := master
		for to == master {
			to = x.masters()[x.r.IntN(3)]
		}
		must(x.servers.Migrate(x.t.Context(), slot, master, to, func() { x.rest(20) }))
	case "master lost":
		master.Kill()
		eventually(x.t, clitest.Patience, "a replica takes over", func(ctx context.Context) bool {
			_, owner, err := x.servers.Owner(ctx, key)
			return err == nil && owner != master
		})
		must(master.Start())
	}
}

// onItsWay is how many units of a round's campaign have left one shard and not come to another
// one. It stops the node that lives meanwhile, or the shards would be read at different times.
func (x *transfers) onItsWay(n int) (units int64) {
	x.t.Helper()
	for _, node := range x.nodes {
		if !node.gone() {
			node.signal(x.t, syscall.SIGSTOP)
			defer node.signal(x.t, syscall.SIGCONT)
		}
	}
	for shard := range movedShards {
		key := fmt.Sprintf("dibs:{%d:%d}:meta", n+1, shard)
		_, master, err := x.servers.Owner(x.t.Context(), key)
		if err != nil {
			x.t.Fatal(err)
		}
		moved, err := master.Do(x.t.Context(), "HGET", key, "moved")
		if err != nil {
			x.t.Fatal(err)
		}
		if moved.IsNil() {
			continue
		}
		left, err := moved.AsInt64()
		if err != nil {
			x.t.Fatal(err)
		}
		units += left
	}
	return units
}

// masters are the members that serve slots now.
func (x *transfers) masters() (all []*servers.Redis) {
	x.t.Helper()
	eventually(x.t, clitest.Patience, "three masters", func(ctx context.Context) bool {
		all = all[:0]
		for _, r := range x.servers.Members {
			if info, err := r.Info(ctx, "replication"); err == nil && info["role"] == "master" {
				all = append(all, r)
			}
		}
		return len(all) == 3
	})
	return all
}

// rest lets up to so many milliseconds pass.
func (x *transfers) rest(most int) {
	select {
	case <-time.After(time.Duration(x.r.IntN(most)) * time.Millisecond):
	case <-x.t.Context().Done():
	}
}
