package redisengine_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

var calls = regexp.MustCompile(`cmdstat_([a-z]+):calls=(\d+)`)

// calls is how often Redis has carried commands out since its start, by name.
func (f *fleet) calls() map[string]int {
	f.Helper()
	info, err := f.redis.Do(f.Context(), "INFO", "commandstats")
	must(f, err)
	text, err := info.ToString()
	must(f, err)
	n := map[string]int{}
	for _, found := range calls.FindAllStringSubmatch(text, -1) {
		n[found[1]], err = strconv.Atoi(found[2])
		must(f, err)
	}
	return n
}

// Nodes with nothing to do write nothing for each campaign: with every write
// synced, that would keep the disk busy for nothing.
func TestIdleNodesWriteNothing(t *testing.T) {
	const campaigns, looks = 30, 100
	f := newFleet(t, 2)
	for i := range campaigns {
		id := fmt.Sprint("c", i)
		f.publish(id, 10)
		f.wants(f.nodes[i%2], dibs.Granted, id, "42", "")
	}
	f.within(time.Minute, "a hundred looks with no more writes than the fleet lease takes", func() bool {
		before, begun := f.calls(), time.Now()
		var after map[string]int
		f.until("a hundred looks, in a time in which leases are renewed", func() bool {
			after = f.calls()
			return after["evalsha"] >= before["evalsha"]+looks && time.Since(begun) > dibs.LeaseTime
		})
		leases := 2 + int(time.Since(begun)/time.Second)
		return after["set"]-before["set"] <= leases && after["hset"] == before["hset"] && after["xadd"] == before["xadd"]
	})
	f.verify()
}

// When a node dies at once after a grant, the others find the grant, though nobody
// claims there any more, whichever of them has the fleet lease.
func TestGrantsOfADeadNodeAreFound(t *testing.T) {
	f := newFleet(t, 3)
	const campaigns = 10
	for i := range campaigns {
		f.publish(fmt.Sprint("c", i), 10)
	}
	f.nodes[0].close(t)
	dead := openEngine(t, f.engineConfig())
	shards := map[dibs.ShardID]dibs.Cursor{}
	for i := range campaigns {
		shard := dibs.ShardID{Campaign: uint32(i + 1)}
		d, err := dead.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "42", Quantity: 1})
		if err != nil || d.Outcome != dibs.Granted {
			t.Fatalf("%+v, %v", d, err)
		}
		shards[shard] = d.Grant.Cursor
	}
	f.until("every grant in the ledger", func() bool {
		for shard, place := range shards {
			totals, err := f.nodes[1].ledger.Totals(t.Context(), shard)
			must(t, err)
			if totals.Position.Before(place) {
				return false
			}
		}
		return true
	})
	f.verify()
}

// A user's own claims cost one look at each campaign and a question to those
// that are not settled, however many ask at the same time; what was granted
// before the question is in the answer, whoever granted it.
func TestOwnClaimsAmongManyCampaigns(t *testing.T) {
	const campaigns = 300
	r := startRedis(t)
	a, b := openEngine(t, redisengine.Config{URL: r.URL()}), openEngine(t, redisengine.Config{URL: r.URL()})
	f := &fleet{T: t, redis: r}
	for n := range uint32(campaigns) {
		shard := dibs.ShardID{Campaign: n + 1}
		must(t, a.Open(t.Context(), bigSale(n+1, 10), shard, &dibs.ShardLoad{Epoch: 1, StockLeft: 10}))
		if held, err := a.Lease(t.Context(), shard, dibs.Cursor{Epoch: 1, Seq: 1}); err != nil || !held {
			t.Fatalf("%v, %v", held, err)
		}
	}
	retire(t, a, dibs.ShardID{Campaign: 2})
	before := f.calls()
	const askers = 200
	var claimed, crowd sync.WaitGroup
	claimed.Add(askers)
	for u := range askers {
		crowd.Go(func() {
			user, shard := fmt.Sprint("u", u), dibs.ShardID{Campaign: 1}
			if u%2 == 0 {
				shard.Campaign = campaigns
			}
			d, err := b.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Quantity: 1})
			claimed.Done()
			if err != nil {
				t.Error(err)
				return
			}
			// Then all ask at the same time.
			claimed.Wait()
			grants, err := a.HoldingsOf(t.Context(), user)
			granted := d.Outcome == dibs.Granted
			if err != nil || granted != (len(grants) == 1) || granted && grants[0].Position != d.Grant.Position {
				t.Errorf("%s was answered %v, and holds %+v, %v", user, d.Outcome, grants, err)
			}
		})
	}
	crowd.Wait()
	after := f.calls()
	if looks := after["hmget"] - before["hmget"]; looks > askers*campaigns/4 {
		t.Errorf("%d looks for %d questions about %d campaigns", looks, askers, campaigns)
	}
	if scripts := after["evalsha"] - before["evalsha"]; scripts > askers*(2+1) {
		t.Errorf("%d scripts for %d claims and %d questions", scripts, askers, askers)
	}
}
