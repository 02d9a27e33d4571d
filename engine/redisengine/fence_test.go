package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// reopen opens a sale of units in a new epoch, from its whole journal.
func reopen(t *testing.T, e *redisengine.Engine, shard dibs.ShardID, stock int64, epoch uint16) {
	t.Helper()
	c := bigSale(shard.Campaign, stock)
	must(t, e.Open(t.Context(), c, shard, &dibs.ShardLoad{Epoch: epoch, StockLeft: stock}))
}

// until asks again and again until done, for at most ten seconds.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

// untilNotOpen asks until the shard is refused as not open; until then the
// server may not be heard.
func untilNotOpen(t *testing.T, ask func() error) {
	t.Helper()
	until(t, "a shard that is not open", func() bool {
		err := ask()
		if err == nil {
			t.Fatal("a shard that may have lost history is answered from")
		}
		return errors.Is(err, dibs.ErrNotOpen)
	})
}

// noneAnswers expects every operation to find the shard not open.
func noneAnswers(t *testing.T, e *redisengine.Engine, shard dibs.ShardID) {
	t.Helper()
	for _, op := range operations {
		switch op.name {
		case "claim", "release", "restock", "withdraw", "configure", "stats", "find":
			if err := op.call(e, shard); !errors.Is(err, dibs.ErrNotOpen) {
				t.Errorf("%s on a shard that may have lost history is %v", op.name, err)
			}
		}
	}
	grants, err := e.HoldingsOf(t.Context(), "ann")
	if err != nil || len(grants) > 0 {
		t.Errorf("holdings on a shard that may have lost history are %v, %v", grants, err)
	}
}

// A server that comes back has every shard refused until it was opened again,
// to a process that has seen nothing of it too, although nothing was lost.
func TestRestartedServerHasToBeLoaded(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	a := openEngine(t, redisengine.Config{URL: r.URL(), Patience: 20 * time.Second})
	shard := openSale(t, a, 10, nil)
	ask := func(e *redisengine.Engine) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "ann", Key: 1, Quantity: 1})
	}
	first, err := ask(a)
	must(t, err)
	r.Kill()
	must(t, r.Start())
	b := openEngine(t, redisengine.Config{URL: r.URL(), Patience: 20 * time.Second})
	noneAnswers(t, b, shard)
	untilNotOpen(t, func() error { _, err := ask(a); return err })
	noneAnswers(t, a, shard)
	if held, err := b.Lease(t.Context(), shard, dibs.Cursor{}); err != nil || !held {
		t.Errorf("the lease of a shard that is not open is %v, %v", held, err)
	}
	reopen(t, b, shard, 10, 2)
	for _, e := range []*redisengine.Engine{a, b} {
		d, err := ask(e)
		if err != nil || !d.Replayed || d.Grant.Position != first.Grant.Position {
			t.Errorf("opened again, the repeat is %+v, %v", d, err)
		}
	}
}

// asMaster are the arguments of a server that syncs always and serves replicas
// at once.
var asMaster = append(slices.Clone(servers.RedisAlways), "--repl-diskless-sync-delay", "0")

// replicaOf starts a server that follows another one, and returns when it has
// all of it.
func replicaOf(t *testing.T, master *servers.Redis) *servers.Redis {
	t.Helper()
	r := startRedis(t, servers.RedisAlways...)
	host, port := splitAddr(t, master.Addr())
	c := connect(t, r)
	must(t, c.Do(t.Context(), c.B().Replicaof().Host(host).Port(port).Build()).Error())
	until(t, "the replica", func() bool { return infoOf(t, c, "replication", "master_link_status") == "up" })
	// The master counts it from its first acknowledgement on.
	mc := connect(t, master)
	until(t, "an acknowledgement", func() bool {
		n, err := mc.Do(t.Context(), mc.B().Wait().Numreplicas(1).Timeout(100).Build()).AsInt64()
		return err == nil && n > 0
	})
	return r
}

// A replica that is promoted with less history grants nothing before the shard
// was opened anew, whether a process has seen what it lacks or not.
func TestPromotedReplicaHasToBeLoaded(t *testing.T) {
	master := startRedis(t, asMaster...)
	a := openEngine(t, redisengine.Config{URL: master.URL(), Patience: time.Second})
	shard := openSale(t, a, 5, nil)
	replica := replicaOf(t, master)
	ask := func(e *redisengine.Engine, user string) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1})
	}
	_, err := ask(a, "ann")
	must(t, err)
	rc, mc := connect(t, replica), connect(t, master)
	must(t, mc.Do(t.Context(), mc.B().Wait().Numreplicas(1).Timeout(5000).Build()).Error())
	// From here on the replica hears nothing.
	must(t, rc.Do(t.Context(), rc.B().Replicaof().No().One().Build()).Error())
	lost, err := ask(a, "bob")
	must(t, err)
	master.Kill()

	b := openEngine(t, redisengine.Config{URL: replica.URL()})
	noneAnswers(t, b, shard)
	// The ledger had settled both.
	load := &dibs.ShardLoad{Epoch: 2, Position: lost.Grant.Cursor, StockLeft: 3}
	for i, user := range []string{"ann", "bob"} {
		load.Holdings = append(load.Holdings, dibs.Holding{
			Cursor: dibs.Cursor{Epoch: 1, Seq: uint32(i) + 2}, UserID: user, Key: 1, Quantity: 1, At: lost.Grant.At,
		})
	}
	must(t, b.Open(t.Context(), bigSale(1, 5), shard, load))
	if d, err := ask(b, "bob"); err != nil || !d.Replayed || d.Grant.Position != lost.Grant.Position {
		t.Errorf("what the replica lacked is repeated as %+v, %v", d, err)
	}
	granted := 2
	for i := range 6 {
		d, err := ask(b, fmt.Sprint(i))
		must(t, err)
		if d.Outcome == dibs.Granted {
			granted++
		}
	}
	if granted != 5 {
		t.Errorf("%d of 5 were granted", granted)
	}
}

// A process that has seen more than there is shuts the shard for all others,
// which cannot know; one that sees it opened anew does not shut it again.
func TestBehindIsShutForAll(t *testing.T) {
	r := startRedis(t, "--enable-debug-command", "yes")
	a := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := openSale(t, a, 10, nil)
	b := openEngine(t, redisengine.Config{URL: r.URL()})
	ask := func(e *redisengine.Engine, user string) error {
		_, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1})
		return err
	}
	must(t, ask(a, "ann"))
	must(t, ask(a, "bob"))
	// History is lost in a way that the server's run does not show.
	c := connect(t, r)
	must(t, c.Do(t.Context(), c.B().Hset().Key("dibs:{1:0}:meta").FieldValue().FieldValue("seq", "2").Build()).Error())
	if _, err := b.Stats(t.Context(), shard); err != nil {
		t.Errorf("a process that knows of nothing is answered %v", err)
	}
	if err := ask(a, "cid"); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("a process that has seen more is answered %v", err)
	}
	noneAnswers(t, b, shard)
	must(t, b.Open(t.Context(), bigSale(1, 10), shard, &dibs.ShardLoad{Epoch: 2, Position: dibs.Cursor{Epoch: 1, Seq: 3}, StockLeft: 8}))
	must(t, ask(b, "dan"))
	must(t, ask(a, "eve"))
}

// When Redis is flushed under load, no user is told of a grant that is not in the
// journal of the epoch in which they are told, and nothing starts anew by itself.
func TestFlushUnderLoad(t *testing.T) {
	r := startRedis(t)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Deadline: 50 * time.Millisecond, Patience: 2 * time.Second})
	shard := openSale(t, e, 1_000_000, nil)
	c := connect(t, r)
	var granted, refused atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint(i, "-", n), Key: 1, Quantity: 1})
				switch {
				case err == nil && d.Outcome == dibs.Granted:
					granted.Add(1)
				case errors.Is(err, dibs.ErrNotOpen):
					refused.Add(1)
					return
				case errors.Is(err, dibs.ErrUnavailable):
				default:
					t.Errorf("under FLUSHALL a claim is %v, %v", d.Outcome, err)
					return
				}
			}
		})
	}
	until(t, "grants", func() bool { return granted.Load() > 500 })
	must(t, c.Do(t.Context(), c.B().Flushall().Build()).Error())
	until(t, "refusals", func() bool { return refused.Load() > 0 })
	stop()
	wg.Wait()
	if _, err := e.Stats(t.Context(), shard); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("after FLUSHALL the shard is counted: %v", err)
	}
	if d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "new", Key: 1, Quantity: 1}); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("after FLUSHALL a claim is %v, %v", d.Outcome, err)
	}
}

func splitAddr(t *testing.T, addr string) (string, int64) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	must(t, err)
	n, err := strconv.ParseInt(port, 10, 64)
	must(t, err)
	return host, n
}

// infoOf is one value of a section of INFO.
func infoOf(t *testing.T, c rueidis.Client, section, name string) string {
	t.Helper()
	info, err := c.Do(t.Context(), c.B().Info().Section(section).Build()).ToString()
	must(t, err)
	_, after, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}
