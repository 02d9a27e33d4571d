package redisengine_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

const (
	// crashStock is more than the rounds of one campaign sell.
	crashStock = 200_000
	// crashRounds is how many rounds one campaign lasts.
	crashRounds = 5
	// crashClients claim at the same time, and leastAnswered is what a round must
	// have granted to count.
	crashClients  = 256
	leastAnswered = 500
)

// levelOf is the level that a policy of the append-only file gives.
var levelOf = map[string]string{"always": dibs.LevelDurable, "everysec": dibs.LevelRelaxed}

// crash is what happens to a server, which is to be started again after it.
type crash func(r *servers.Redis, d *servers.Disk) error

// killed loses nothing: what was written is the system's.
func killed(r *servers.Redis, _ *servers.Disk) error {
	r.Kill()
	return nil
}

// powerless loses what was not synced.
func powerless(_ *servers.Redis, d *servers.Disk) error {
	_, err := d.PowerLoss()
	return err
}

// crashes lets a server suffer under load again and again, and expects that
// what is in the journal afterwards is whole. It returns what was lost.
func crashes(t *testing.T, n int, policy string, suffer crash) tally {
	t.Helper()
	rng := dice(t)
	server, disk, err := servers.StartRedisOnDisk(t.TempDir(), "--appendonly", "yes", "--appendfsync", policy)
	must(t, err)
	t.Cleanup(server.Kill)
	var nodes [2]*redisengine.Engine
	for i := range nodes {
		nodes[i] = openEngine(t, redisengine.Config{
			URL: server.URL(), Durability: levelOf[policy], Deadline: 200 * time.Millisecond, Patience: 2 * time.Second,
		})
	}
	var all tally
	for number := uint32(1); n > 0 && !t.Failed(); number++ {
		r := newRush(t, number, crashStock, nodes[:]...)
		r.begin(crashClients)
		for range min(crashRounds, n) {
			n--
			r.more(leastAnswered + rng.Int64N(4000))
			if rng.IntN(2) == 0 {
				// The ledger is ahead of the disk at times.
				r.settleSome(rng.IntN(5000))
			}
			must(t, suffer(server, disk))
			must(t, server.Start())
			r.tally.faults++
		}
		r.more(leastAnswered)
		r.end()
		all.add(r.check())
		r.repeats()
		retire(t, nodes[0], r.shard)
	}
	t.Log(all)
	return all
}

// TestKilledServerLosesNothing kills Redis under load.
func TestKilledServerLosesNothing(t *testing.T) {
	if got := crashes(t, rounds(t, 5, 1), "always", killed); got.lost > 0 {
		t.Errorf("%d answered grants are lost", got.lost)
	}
}

// TestPowerLossAtAlways cuts the append-only file back to what was synced.
func TestPowerLossAtAlways(t *testing.T) {
	if got := crashes(t, rounds(t, 5, 1), "always", powerless); got.lost > 0 {
		t.Errorf("%d answered grants are lost", got.lost)
	}
}

// TestPowerLossAtEverysec loses what the level declares, and nothing else:
// what is left is whole, and nothing is sold twice.
func TestPowerLossAtEverysec(t *testing.T) {
	if got := crashes(t, rounds(t, 3, 5), "everysec", powerless); got.lost == 0 {
		t.Error("nothing was lost: the disk is not cut back, and the test of the other level proves nothing")
	}
}

// TestStalledDisk has every sync last long. At everysec Redis then keeps what it
// has answered in memory, and a kill is enough to lose it; at always it
// answers late.
func TestStalledDisk(t *testing.T) {
	for policy, by := range map[string]time.Duration{"everysec": 5 * time.Second, "always": 20 * time.Millisecond} {
		server, disk, err := servers.StartRedisOnDisk(t.TempDir(), "--appendonly", "yes", "--appendfsync", policy)
		must(t, err)
		t.Cleanup(server.Kill)
		e := openEngine(t, redisengine.Config{
			URL: server.URL(), Durability: levelOf[policy], Deadline: 200 * time.Millisecond, Patience: 2 * time.Second,
		})
		r := newRush(t, 1, 10*crashStock, e)
		for range rounds(t, 1, 50) {
			must(t, disk.Slow(by))
			r.begin(crashClients)
			r.more(leastAnswered)
			if policy == "everysec" {
				until(t, "answers that are not written", func() bool {
					info, err := server.Info(t.Context(), "persistence")
					must(t, err)
					n, err := strconv.Atoi(info["aof_buffer_length"])
					must(t, err)
					return n > 1<<16
				})
			}
			server.Kill()
			must(t, disk.Slow(0))
			must(t, server.Start())
			r.tally.faults++
			r.more(leastAnswered)
			r.end()
		}
		got := r.check()
		r.repeats()
		t.Logf("at %s, syncs last %v longer: %v", policy, by, got)
		if lost := got.lost > 0; lost != (policy == "everysec") {
			t.Errorf("at %s, %d answered grants are lost", policy, got.lost)
		}
	}
}
