package moving_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// newCluster starts three masters, each with a replica.
func newCluster(t *testing.T) *servers.Cluster {
	t.Helper()
	c, err := servers.StartCluster(t.Context(), t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// TestClusterSellsAll sells 5,000 units over six shards of a Cluster to 20,000 users,
// through two nodes, while a master is killed and its replica takes over: exactly 5,000
// are told that they have one, and that is what the ledger has.
func TestClusterSellsAll(t *testing.T) {
	cluster := newCluster(t)
	f := newFleetOn(t, 2, cluster.URL(), dibs.LevelLedgered)
	const units, users, together = 5_000, 20_000, 512
	c := f.publish("sale", 6, units, 1)
	_, master, err := cluster.Owner(t.Context(), fmt.Sprintf("dibs:{%d:0}:meta", c.Number))
	if err != nil {
		t.Fatal(err)
	}
	var granted, soldOut atomic.Int64
	next := make(chan int)
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() {
			for user := range next {
				switch r := f.claim(f.nodes[i%2], c, fmt.Sprintf("user-%d", user), "key", 1); r.Outcome {
				case dibs.Granted:
					granted.Add(1)
				case dibs.SoldOut:
					soldOut.Add(1)
				default:
					t.Errorf("user %d is told %v", user, r.Outcome)
				}
			}
		})
	}
	killed := false
	for user := range users {
		next <- user
		if !killed && granted.Load() > units/5 {
			killed = true
			master.Kill()
		}
	}
	close(next)
	all.Wait()
	if !killed || granted.Load() != units || soldOut.Load() != users-units {
		t.Errorf("%d granted and %d told that all is sold, want %d and %d; a master was killed: %v",
			granted.Load(), soldOut.Load(), units, users-units, killed)
	}
	f.whole(c, units, 0)
}

// TestAShardIsAway ends the server of some shards, with its replica: its users are told
// that it does not answer, the others buy what is there, and nobody is told that all is
// sold before the server is back and its units too are sold.
func TestAShardIsAway(t *testing.T) {
	cluster := newCluster(t)
	f := newFleetOn(t, 1, cluster.URL(), dibs.LevelDurable)
	n := f.nodes[0]
	c := f.publish("sale", 6, 60, 60)
	_, master, err := cluster.Owner(t.Context(), fmt.Sprintf("dibs:{%d:0}:meta", c.Number))
	if err != nil {
		t.Fatal(err)
	}
	away := map[uint8]bool{}
	for shard := range uint8(6) {
		_, owner, err := cluster.Owner(t.Context(), fmt.Sprintf("dibs:{%d:%d}:meta", c.Number, shard))
		if err != nil {
			t.Fatal(err)
		}
		away[shard] = owner == master
	}
	// The replica goes first: it must not take over.
	for i, r := range cluster.Members[:3] {
		if r == master {
			cluster.Members[3+i].Kill()
			defer func() {
				if err := cluster.Members[3+i].Start(); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	master.Kill()
	there, gone := uint8(0), uint8(0)
	for shard, is := range away {
		if is {
			gone = shard
		} else {
			there = shard
		}
	}
	buyer := usersOf(c, there, 1)[0]
	sold := int64(0)
	for over := time.Now().Add(4 * time.Minute); sold < 10*int64(6-count(away)); {
		r, err := f.ask(n, c, buyer, fmt.Sprint("key-", sold))
		if err == nil && r.Outcome == dibs.Granted {
			sold++
		} else if err == nil || time.Now().After(over) {
			t.Fatalf("after %d with a server away: %v, %v", sold, r.Outcome, err)
		}
	}
	for _, user := range []string{buyer, usersOf(c, gone, 1)[0]} {
		if r, err := f.ask(n, c, user, ""); !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("with a server away: %v, %v", r.Outcome, err)
		}
	}
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	for ; sold < 60; sold++ {
		if r := f.claim(n, c, buyer, fmt.Sprint("key-", sold), 1); r.Outcome != dibs.Granted {
			t.Fatalf("after %d with all servers: %v", sold, r.Outcome)
		}
	}
	if r := f.claim(n, c, usersOf(c, gone, 1)[0], "", 1); r.Outcome != dibs.SoldOut {
		t.Errorf("after the last unit: %v", r.Outcome)
	}
	f.whole(c, 60, 0)
}

func count(of map[uint8]bool) (n int) {
	for _, is := range of {
		if is {
			n++
		}
	}
	return n
}
