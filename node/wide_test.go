package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/livestats"
)

// wide is a sale whose shards are on both of two deployments.
type wide struct {
	*several
	c     *dibs.Campaign
	units int
	// users counts those who have claimed, granted the units that they got.
	users, granted int
}

// newWide publishes the sale, sells a part of it and has that settled.
func newWide(t *testing.T) *wide {
	w := &wide{several: newSeveral(t, 2), units: 60}
	w.open(0, 1)
	now, units, shards := time.Now(), int64(w.units), 6
	_, err := w.node.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "wide", Kind: dibs.Sale, Title: "Phone", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour), Stock: dibs.StockSpec{Units: &units}, Shards: &shards,
	})
	if err == nil {
		w.c, err = w.node.Campaigns.Publish(t.Context(), "wide")
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if said := w.next(); said != "granted" {
			t.Fatalf("a claim is answered with %s", said)
		}
	}
	w.whole()
	return w
}

// next has a new user claim a unit, and returns the outcome, or the reason of the error.
func (w *wide) next() string {
	w.Helper()
	w.users++
	return w.again(fmt.Sprint("user-", w.users))
}

func (w *wide) again(user string) string {
	w.Helper()
	r, err := w.claim("wide", user)
	var failed *dibs.Error
	switch {
	case errors.As(err, &failed):
		return failed.Reason.String()
	case err != nil:
		w.Fatal(err)
	case r.Outcome == dibs.Granted && !r.Replayed:
		w.granted++
	}
	return r.Outcome.String()
}

// on lists the shards of a deployment.
func (w *wide) on(deployment int) (shards []int) {
	w.Helper()
	for i := range w.c.Shards {
		id := dibs.ShardID{Campaign: w.c.Number, Shard: uint8(i)}
		number, err := w.node.Ledger.DeploymentOf(w.Context(), id)
		if err != nil {
			w.Fatal(err)
		}
		if number == deployment {
			shards = append(shards, i)
		}
	}
	if len(shards) == 0 || len(shards) == w.c.Shards {
		w.Fatalf("deployment %d has the shards %v", deployment, shards)
	}
	return shards
}

// left sums up what the shards of a deployment have left.
func (w *wide) left(deployment int) (left int) {
	w.Helper()
	for _, i := range w.on(deployment) {
		st, err := w.node.Engine.Stats(w.Context(), dibs.ShardID{Campaign: w.c.Number, Shard: uint8(i)})
		if err != nil {
			w.Fatal(err)
		}
		left += int(st.Remaining)
	}
	return left
}

// sellWithout sells while the second deployment is away: users of its shards receive
// unavailable, the others everything that the first one has, and nobody hears that nothing
// is left.
func (w *wide) sellWithout() {
	w.Helper()
	w.until("the deployment is away", func() bool { return !w.node.Health(w.Context()).Deployments[2] })
	before, said := w.granted, map[string]int{}
	for range 150 {
		said[w.next()]++
	}
	// Units may have left for the other deployment before it was away.
	if left := w.left(1); left > 0 || w.granted == before || said["unavailable"] == 0 || said["sold_out"] > 0 {
		w.Errorf("without the second deployment %d units were sold, %d were not, and the answers are %v", w.granted-before, left, said)
	}
	w.counted()
}

// counted expects the numbers of the sale while the second deployment is away: of its shards
// they are the ledger's.
func (w *wide) counted() {
	w.Helper()
	st, err := w.node.Stats(w.Context(), "wide")
	if err != nil {
		w.Fatalf("the numbers of a campaign with shards that are away: %v", err)
	}
	if st.ShardsAway != len(w.on(2)) || st.Granted != int64(w.granted) || st.Stock != int64(w.units) || st.Remaining != int64(w.units-w.granted) {
		w.Errorf("%d units are granted, and the numbers are %+v", w.granted, st)
	}
	registry := w.node.Live.Registry
	meters := livestats.New(livestats.Config{
		Campaigns: registry, Stats: w.node, Engine: w.node.Engine, Ledger: w.node.Ledger, Refused: registry.Refused,
		EngineTimes: func() dibs.Tally { return w.node.Claims.Metrics().Engine },
	})
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	err = meters.Follow(ctx, "wide", func(m livestats.Measure) error {
		if m.Stats.ShardsAway != st.ShardsAway || m.Sums.Engine != st.Granted || m.Sums.Agree != nil {
			w.Errorf("%d units are granted, and the measure is %+v", w.granted, m)
		}
		return errMeasured
	})
	if !errors.Is(err, errMeasured) {
		w.Errorf("no measure: %v", err)
	}
}

var errMeasured = errors.New("a measure was taken")

// sellOut sells all that is left.
func (w *wide) sellOut() {
	w.Helper()
	w.until("all is sold", func() bool {
		switch said := w.again(fmt.Sprint("user-", w.users)); said {
		case "unavailable", "overloaded":
			// The same user asks again.
			return false
		case "sold_out":
			return true
		default:
			w.users++
			return false
		}
	})
	if w.granted != w.units {
		w.Errorf("%d of %d units were granted", w.granted, w.units)
	}
	w.whole()
}

// TestACampaignWhileADeploymentIsAway kills, or freezes, one of the two servers that have
// the shards of a campaign: the other one sells what it has, and when it is back all is
// sold.
func TestACampaignWhileADeploymentIsAway(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		w := newWide(t)
		w.redis[1].Kill()
		w.sellWithout()
		if err := w.redis[1].Start(); err != nil {
			t.Fatal(err)
		}
		w.sellOut()
	})
	t.Run("frozen", func(t *testing.T) {
		w := newWide(t)
		if err := w.redis[1].Freeze(); err != nil {
			t.Fatal(err)
		}
		w.sellWithout()
		if err := w.redis[1].Thaw(); err != nil {
			t.Fatal(err)
		}
		w.sellOut()
	})
	t.Run("down at a restart", func(t *testing.T) {
		w := newWide(t)
		w.close()
		w.redis[1].Kill()
		w.several.open(0, 1)
		w.sellWithout()
		if err := w.redis[1].Start(); err != nil {
			t.Fatal(err)
		}
		w.sellOut()
	})
}

// TestACampaignThatLosesADeployment loses one of two servers for good, and with it some
// shards of a campaign: they are given up, and what is unsold of them is sold by the other.
func TestACampaignThatLosesADeployment(t *testing.T) {
	w := newWide(t)
	lost := w.on(2)
	w.redis[1].Kill()
	w.sellWithout()
	for _, shard := range lost {
		w.until("the shard is given up", func() bool {
			_, err := w.node.Campaigns.AbandonShard(t.Context(), "wide", shard, campaigns.Abandonment{Yes: true})
			if err != nil && !errors.Is(err, dibs.ErrInvalidState) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	w.sellOut()
	if shards, err := w.node.Ledger.Placements(t.Context(), time.Now()); err != nil || shards[dibs.ShardID{Campaign: w.c.Number, Shard: uint8(lost[0])}] != 1 {
		t.Errorf("the shards are on %v, %v", shards, err)
	}
}
