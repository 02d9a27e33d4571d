package ledgertest

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/live"
)

// testDeployments: the ledger keeps the engine's deployments by number, and of two nodes
// that enter one at the same time it tells the second to read again. Shards that were on a
// server before there were deployments belong to the first one that enters.
func testDeployments(t *testing.T, f *fixture) {
	ctx, d := t.Context(), f.ledger().Deployments
	listed := func(want ...live.Deployment) {
		t.Helper()
		same(t, "the deployments", try(d.Deployments(ctx)).must(t), want)
	}
	listed()
	// Live by the clock of every database: one shard on a server, one in a process, one
	// that was never opened.
	shards := make([]dibs.ShardID, 3)
	for i, server := range []string{"run", "", "none"} {
		c := campaign("old-"+server, 10)
		c.EndsAt = start.AddDate(100, 0, 0)
		f.insert(c)
		shards[i] = dibs.ShardID{Campaign: c.Number}
		if server != "none" {
			f.must(errOf(f.ledger().Live.LoadShard(ctx, c, shards[i], live.Opener{Server: server})))
		}
	}
	before := live.Deployment{Live: 1}
	listed(before)
	one := live.Deployment{Number: 1, Identity: "one", Place: "redis://a"}
	two := live.Deployment{Number: 2, Identity: "two", Place: "redis://b"}
	f.must(d.SaveDeployments(ctx, []live.Deployment{before}, []live.Deployment{one, two}))
	f.must(errOf(f.ledger().Live.SeeServers(ctx, nil, []string{"run"})))
	one.Live, one.Silent, two.Silent = 1, true, true
	listed(one, two)
	for i, want := range []int{1, 0, 0} {
		same(t, "the deployment of the shard", try(d.DeploymentOf(ctx, shards[i])).must(t), want)
	}
	wants(t, "the deployment of a shard that there is not",
		errOf(d.DeploymentOf(ctx, dibs.ShardID{Campaign: 99})), dibs.ErrNotFound)
	// A Redis that was emptied has another identity, and may be reached elsewhere.
	again := live.Deployment{Number: 2, Identity: "two again", Place: "redis://c"}
	wants(t, "to save what another node has changed", d.SaveDeployments(ctx, []live.Deployment{one}, []live.Deployment{again}), dibs.ErrConflict)
	listed(one, two)
	f.must(d.SaveDeployments(ctx, []live.Deployment{one, two}, []live.Deployment{again}))
	again.Silent = true
	listed(one, again)
}

// testPlacements: the epoch that opens a shard says on which deployment it is, and no
// other deployment gets it from then on. An engine without deployments takes it off.
func testPlacements(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(inShards(2, campaign("c", 10)))
	first, second := dibs.ShardID{Campaign: c.Number}, dibs.ShardID{Campaign: c.Number, Shard: 1}
	placed := func(want map[dibs.ShardID]int) {
		t.Helper()
		same(t, "where the shards are", try(l.Deployments.Placements(ctx, start)).must(t), want)
	}
	placed(map[dibs.ShardID]int{first: 0, second: 0})
	f.must(errOf(l.Live.LoadShard(ctx, c, first, live.Opener{Deployment: 2, Server: "b"})))
	f.must(errOf(l.Live.Fence(ctx, second, live.Opener{Deployment: 1, Server: "a"}, f.totals(c, 1))))
	placed(map[dibs.ShardID]int{first: 2, second: 1})
	// Its claims are repeated for a while after its end.
	c.State = dibs.EndedState
	f.must(l.Campaigns.UpdateCampaign(ctx, c))
	placed(map[dibs.ShardID]int{first: 2, second: 1})
	before := f.totals(c, 0)
	wants(t, "a load on another deployment",
		errOf(l.Live.LoadShard(ctx, c, first, live.Opener{Deployment: 1, Server: "a", Epoch: before.Epoch})), live.ErrOtherDeployment)
	wants(t, "a fence by another deployment",
		errOf(l.Live.Fence(ctx, first, live.Opener{Deployment: 1, Server: "a", Epoch: before.Epoch}, before)), live.ErrOtherDeployment)
	same(t, "the totals after a load that was refused", f.totals(c, 0), before)
	late := try(l.Deployments.Placements(ctx, c.EndsAt.Add(time.Millisecond))).must(t)
	same(t, "the shards of campaigns that end later", late, map[dibs.ShardID]int{})
	// To an engine inside of a process, once the server is gone.
	f.must(errOf(l.Live.SeeServers(ctx, nil, []string{"b"})))
	f.must(errOf(l.Live.LoadShard(ctx, c, first, live.Opener{})))
	placed(map[dibs.ShardID]int{first: 0, second: 1})
}

// testAbandonShard: a shard whose deployment is lost leaves it with what the ledger has, once
// what is unsold is confirmed. Entries that were read of it before are settled no more.
func testAbandonShard(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	id := dibs.ShardID{Campaign: c.Number}
	abandon := func(what string, unsold *int64, want error) {
		t.Helper()
		from, err := l.Campaigns.AbandonShard(ctx, id, unsold)
		wants(t, "to abandon "+what, err, want)
		if err == nil {
			same(t, "the deployment that is left", from, 2)
		}
	}
	abandon("a shard that is nowhere", nil, dibs.ErrInvalidState)
	_, s := f.loadBy(c, 0, live.Opener{Deployment: 2, Server: "b"})
	s.grant("ann", 3)
	f.settle(s)
	s.grant("bob", 1)
	late := s.batch()
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: id, Ref: "more", Delta: 5}))
	before := f.totals(c, 0)
	abandon("by another number", new(int64(11)), dibs.ErrInvalidState)
	same(t, "the totals after a refusal", f.totals(c, 0), before)
	abandon("by the number that is unsold", new(int64(12)), nil)
	wants(t, "a batch of the lost deployment", l.Live.Settle(ctx, []live.Batch{late}), dibs.ErrFenced)
	// Another one has it at once, although the server before was alive.
	load, _ := f.loadBy(c, 0, live.Opener{Deployment: 1, Server: "a"})
	same(t, "the stock of the next load", load.StockLeft, int64(12))
	same(t, "the holdings of the next load", len(load.Holdings), 1)
	same(t, "the commands that wait", len(f.commands()), 0)
	f.clean(c)
}
