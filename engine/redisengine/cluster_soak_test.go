//go:build soak

package redisengine_test

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// TestClusterFailsOver kills the master of a shard's slot under load; its
// replica has acknowledged what was granted before.
func TestClusterFailsOver(t *testing.T) {
	t.Parallel()
	var all tally
	for range rounds(t, 1, 20) {
		c := startCluster(t)
		node := openEngine(t, redisengine.Config{URL: c.URL(), Durability: dibs.LevelDurable, Deadline: 300 * time.Millisecond, Patience: 2 * time.Second})
		r := newRush(t, 1, 10_000, node)
		r.begin(crashClients)
		r.more(leastAnswered)
		_, master, err := c.Owner(t.Context(), "dibs:{1:0}:meta")
		must(t, err)
		master.Kill()
		r.tally.faults++
		r.more(leastAnswered)
		r.end()
		got := r.check()
		r.repeats()
		r.sellOut()
		all.add(got)
		c.Stop()
	}
	t.Log(all)
}
