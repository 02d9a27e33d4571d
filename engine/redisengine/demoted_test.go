package redisengine_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// follows makes a server a replica of another one.
func follows(t *testing.T, r, master *servers.Redis) {
	t.Helper()
	host, port := splitAddr(t, master.Addr())
	c := connect(t, r)
	must(t, c.Do(t.Context(), c.B().Replicaof().Host(host).Port(port).Build()).Error())
}

// leads makes a server a master.
func leads(t *testing.T, r *servers.Redis) {
	t.Helper()
	c := connect(t, r)
	must(t, c.Do(t.Context(), c.B().Replicaof().No().One().Build()).Error())
}

// level waits until a replica has all that its master has.
func level(t *testing.T, replica, master rueidis.Client) {
	t.Helper()
	until(t, "the replica to have all", func() bool {
		return infoOf(t, replica, "replication", "master_link_status") == "up" &&
			infoOf(t, replica, "replication", "master_repl_offset") == infoOf(t, master, "replication", "master_repl_offset")
	})
}

// A master that was demoted, and promoted again, ran all the time: what was
// granted elsewhere meanwhile it may lack, whatever its id says, and as often as
// it happens.
func TestDemotedAndPromotedAgainHasToBeLoaded(t *testing.T) {
	master := startRedis(t, asMaster...)
	a := openEngine(t, redisengine.Config{URL: master.URL(), Patience: time.Second})
	shard := openSale(t, a, 10, nil)
	ask := func(e *redisengine.Engine, user string) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1})
	}
	c := connect(t, master)
	run := infoOf(t, c, "server", "run_id")
	replica := replicaOf(t, master)
	// A replica alone is no reason to load anything.
	first, err := ask(a, "ann")
	must(t, err)
	rc := connect(t, replica)
	level(t, rc, c)
	for epoch := uint16(2); epoch <= 3; epoch++ {
		leads(t, replica)
		follows(t, master, replica)
		level(t, c, rc)
		leads(t, master)
		if now := infoOf(t, c, "server", "run_id"); now != run {
			t.Fatalf("the server's run is %s, and was %s", now, run)
		}
		b := openEngine(t, redisengine.Config{URL: master.URL()})
		noneAnswers(t, b, shard)
		untilNotOpen(t, func() error { _, err := ask(a, "ann"); return err })
		reopen(t, b, shard, 10, epoch)
		for _, e := range []*redisengine.Engine{a, b} {
			if d, err := ask(e, "ann"); err != nil || !d.Replayed || d.Grant.Position != first.Grant.Position {
				t.Errorf("opened again in epoch %d, the repeat is %+v, %v", epoch, d, err)
			}
		}
		follows(t, replica, master)
		level(t, rc, c)
	}
}
