package redisengine_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// startCluster starts a cluster that ends with the test.
func startCluster(t *testing.T) *servers.Cluster {
	t.Helper()
	c, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(c.Stop)
	return c
}

// TestSlotsMigrateUnderLoad moves a shard's slot around the masters, key by
// key, while the crowd claims: exactly the stock is sold.
func TestSlotsMigrateUnderLoad(t *testing.T) {
	t.Parallel()
	rng := dice(t)
	c := startCluster(t)
	var nodes [2]*redisengine.Engine
	for i := range nodes {
		nodes[i] = openEngine(t, redisengine.Config{URL: c.URL(), Durability: dibs.LevelDurable, Deadline: 300 * time.Millisecond, Patience: 2 * time.Second})
	}
	const key = "dibs:{1:0}:meta"
	n := rounds(t, 3, 15)
	r := newRush(t, 1, 10_000+int64(n)*5000, nodes[:]...)
	r.begin(crashClients)
	for range n {
		r.more(leastAnswered)
		slot, from, err := c.Owner(t.Context(), key)
		must(t, err)
		to := c.Members[rng.IntN(3)]
		for to == from {
			to = c.Members[rng.IntN(3)]
		}
		// In some steps the crowd tries for a while what it can do in between.
		must(t, c.Migrate(t.Context(), slot, from, to, func() { pause(t.Context(), time.Duration(rng.IntN(40))*time.Millisecond) }))
		r.tally.faults++
		r.more(leastAnswered)
	}
	r.end()
	got := r.check()
	if got.lost > 0 {
		t.Errorf("%d answered grants are lost", got.lost)
	}
	r.repeats()
	r.sellOut()
	t.Log(got)
}
