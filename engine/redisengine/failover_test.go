package redisengine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// startSentinel starts a set that ends with the test.
func startSentinel(t *testing.T) *servers.Sentinel {
	t.Helper()
	s, err := servers.StartSentinel(t.Context(), t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(s.Stop)
	return s
}

// failoverConfig is for sets in which a master is replaced within seconds.
func failoverConfig(url, level string) redisengine.Config {
	return redisengine.Config{URL: url, Durability: level, Deadline: 200 * time.Millisecond, Patience: time.Second}
}

// others are the members of a set but one.
func others(s *servers.Sentinel, master *servers.Redis) []*servers.Redis {
	return slices.DeleteFunc(slices.Clone(s.Members), func(r *servers.Redis) bool { return r == master })
}

// cutOff freezes both replicas and cuts their links.
func cutOff(t *testing.T, s *servers.Sentinel) (master *servers.Redis, replicas []*servers.Redis) {
	t.Helper()
	master, err := s.Master(t.Context())
	must(t, err)
	replicas = others(s, master)
	must(t, s.Prefer(t.Context(), replicas[0]))
	for _, replica := range replicas {
		must(t, replica.Freeze())
	}
	// Calls would wait in their buffers, and be read after the thaw.
	_, err = master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "REPLICA")
	must(t, err)
	return master, replicas
}

// replace kills the master for good, and returns when one of the replicas has
// taken its place.
func replace(t *testing.T, s *servers.Sentinel, master *servers.Redis, replicas []*servers.Redis) {
	t.Helper()
	master.Kill()
	for _, replica := range replicas {
		must(t, replica.Thaw())
	}
	must(t, s.Promoted(t.Context(), replicas[0]))
}

// endOf is the place of the last entry that a server has of shard 1/0.
func endOf(t *testing.T, r *servers.Redis) string {
	t.Helper()
	m, err := r.Do(t.Context(), "XINFO", "STREAM", "dibs:{1:0}:journal")
	must(t, err)
	fields, err := m.AsMap()
	must(t, err)
	end := fields["last-generated-id"]
	id, err := end.ToString()
	must(t, err)
	return id
}

// recovered lets the crowd go on, through a node that has seen nothing and
// through others, and expects the shard in a new epoch, and the stock to be
// sold to zero.
func recovered(t *testing.T, s *servers.Sentinel, r *rush, level string, seen ...*redisengine.Engine) tally {
	t.Helper()
	nodes := append([]*redisengine.Engine{openEngine(t, failoverConfig(s.URL(), level))}, seen...)
	r.nodes.Store(&nodes)
	r.tally.faults++
	r.more(leastAnswered)
	r.end()
	got := r.check()
	// An opening whose answer got lost counts as well.
	if end := r.book.Position(); end.Epoch <= r.first {
		t.Errorf("the shard was not opened in a new epoch: it is at %s", end)
	}
	r.repeats()
	r.sellOut()
	return got
}

// TestStaleReplicaIsPromoted is the fork: the ledger is drained ahead of the
// replicas, one of which is promoted. Claims come at once, from a node that has
// seen nothing: alone, so that nobody tells the server what it lacks, or beside
// one that has seen everything.
func TestStaleReplicaIsPromoted(t *testing.T) {
	t.Parallel()
	var all tally
	for i := range rounds(t, 1, 20) {
		s := startSentinel(t)
		wire := &cable{}
		cfg := failoverConfig(s.URL(), dibs.LevelDurable)
		cfg.Dial = wire.dial
		old := openEngine(t, cfg)
		r := newRush(t, 1, 20_000, old)
		r.begin(crashClients)
		r.more(leastAnswered)
		master, replicas := cutOff(t, s)
		r.more(4000)
		// A crowd that went on would outrun a slow machine's ledger, and sell out.
		r.end()
		r.settle()
		ahead := r.book.Position()
		r.begin(crashClients)
		r.more(leastAnswered)
		seen := []*redisengine.Engine{old}
		if i%2 == 0 {
			wire.sever()
			seen = nil
		}
		replace(t, s, master, replicas)
		t.Logf("the ledger is at %s, the promoted replica at %s", ahead, endOf(t, replicas[0]))
		all.add(recovered(t, s, r, dibs.LevelDurable, seen...))
		s.Stop()
	}
	t.Log(all)
}

// TestReplicatedSurvivesItsMaster has claims that no replica can confirm: none
// is answered. Then the master is gone, and whatever was answered is there.
func TestReplicatedSurvivesItsMaster(t *testing.T) {
	t.Parallel()
	var all tally
	for range rounds(t, 1, 20) {
		s := startSentinel(t)
		r := newRush(t, 1, 10_000, openEngine(t, redisengine.Config{
			// With one of two promoted, both have to confirm.
			URL: s.URL(), Durability: dibs.LevelReplicated, Replicas: 2, Deadline: 200 * time.Millisecond, Patience: time.Second,
		}))
		r.begin(crashClients)
		r.more(leastAnswered)
		master, replicas := cutOff(t, s)
		// Answers that were confirmed before come through; then there is silence.
		silent := false
		for range 20 {
			before := r.granted.Load()
			pause(t.Context(), 1500*time.Millisecond)
			if silent = r.granted.Load() == before; silent {
				break
			}
		}
		if !silent {
			t.Error("grants are answered, again and again, that no replica has")
		}
		at := endOf(t, master)
		replace(t, s, master, replicas)
		t.Logf("the master was at %s, the promoted replica is at %s", at, endOf(t, replicas[0]))
		// Only one replica is left: two cannot confirm any more.
		got := recovered(t, s, r, dibs.LevelDurable)
		if got.lost > 0 {
			t.Errorf("%d answered grants are lost", got.lost)
		}
		all.add(got)
		s.Stop()
	}
	t.Log(all)
}
