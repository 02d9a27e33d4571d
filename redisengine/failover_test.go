package redisengine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/redisengine"
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
func failoverConfig(url string) redisengine.Config {
	return redisengine.Config{URL: url, Deadline: 200 * time.Millisecond, Patience: time.Second}
}

// others are the members of a set but one.
func others(s *servers.Sentinel, master *servers.Redis) []*servers.Redis {
	return slices.DeleteFunc(slices.Clone(s.Members), func(r *servers.Redis) bool { return r == master })
}

// behind freezes both replicas, cuts their links, and has the ledger drained
// ahead of them, while the crowd goes on; then the master is gone for good.
func behind(t *testing.T, s *servers.Sentinel, r *rush, lag int64) (next *servers.Redis) {
	t.Helper()
	master, err := s.Master(t.Context())
	must(t, err)
	replicas := others(s, master)
	must(t, s.Prefer(t.Context(), replicas[0]))
	for _, replica := range replicas {
		must(t, replica.Freeze())
	}
	// What is sent would wait in their buffers, and be read after the thaw.
	_, err = master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "REPLICA")
	must(t, err)
	r.more(lag)
	r.settle()
	ahead := r.book.Position()
	r.more(leastAnswered)
	master.Kill()
	for _, replica := range replicas {
		must(t, replica.Thaw())
	}
	must(t, s.Promoted(t.Context(), replicas[0]))
	if end, err := replicas[0].Do(t.Context(), "XINFO", "STREAM", "dibs:{1:0}:journal"); err != nil {
		t.Error(err)
	} else if fields, err := end.AsMap(); err != nil {
		t.Error(err)
	} else {
		id := fields["last-generated-id"]
		t.Logf("the ledger is at %s, the promoted replica at %s", ahead, id.String())
	}
	return replicas[0]
}

// TestStaleReplicaIsPromoted is the fork: the ledger is drained ahead of the
// replicas, one of which is promoted. Claims come at once, from nodes that
// have seen everything and from one that has seen nothing.
func TestStaleReplicaIsPromoted(t *testing.T) {
	t.Parallel()
	var all tally
	for range rounds(t, 1, 20) {
		s := startSentinel(t)
		old := openEngine(t, failoverConfig(s.URL()))
		r := newRush(t, 1, 20_000, old)
		r.begin(crashClients)
		r.more(leastAnswered)
		behind(t, s, r, 4000)
		fresh := openEngine(t, failoverConfig(s.URL()))
		r.nodes.Store(&[]*redisengine.Engine{fresh, old})
		r.tally.faults++
		r.more(leastAnswered)
		r.end()
		got := r.check()
		if got.opened == 0 {
			t.Error("the shard was not opened in a new epoch")
		}
		r.repeats()
		r.sellOut()
		all.add(got)
		s.Stop()
	}
	t.Log(all)
}

// TestFrozenMasterComesBack has a master that is replaced while it stands
// still, and then goes on as if nothing had been: what it answers until it is
// told better is lost, but nothing is sold twice in the ledger, and the nodes
// that never lost sight of it find the new one.
func TestFrozenMasterComesBack(t *testing.T) {
	t.Parallel()
	var all tally
	for range rounds(t, 1, 20) {
		s := startSentinel(t)
		nodes := []*redisengine.Engine{openEngine(t, failoverConfig(s.URL())), openEngine(t, failoverConfig(s.URL()))}
		r := newRush(t, 1, 20_000, nodes...)
		r.begin(crashClients)
		r.more(leastAnswered)
		master, err := s.Master(t.Context())
		must(t, err)
		next := others(s, master)[0]
		must(t, s.Prefer(t.Context(), next))
		must(t, master.Freeze())
		must(t, s.Promoted(t.Context(), next))
		must(t, master.Thaw())
		r.tally.faults++
		r.more(leastAnswered)
		r.end()
		got := r.check()
		if got.opened == 0 {
			t.Error("the shard was not opened in a new epoch")
		}
		r.repeats()
		r.sellOut()
		all.add(got)
		s.Stop()
	}
	t.Log(all)
}
