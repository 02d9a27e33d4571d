package redisengine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// holdLedger keeps everybody from writing to a SQLite ledger until release.
func (f *fleet) holdLedger() (release func()) {
	f.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(f.ledger, "sqlite:"))
	must(f.T, err)
	conn, err := db.Conn(f.Context())
	must(f.T, err)
	f.until("the ledger's lock", func() bool {
		_, err = conn.ExecContext(f.Context(), "BEGIN IMMEDIATE")
		return err == nil
	})
	return func() {
		f.Helper()
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		must(f.T, errors.Join(err, conn.Close(), db.Close()))
	}
}

// A yes that waited for the ledger is not given when Redis lost it first.
func TestLedgeredSurvivesTheLossOfRedis(t *testing.T) {
	f := newFleet(t, 0)
	f.tune.Ledgered = true
	n := f.join()
	f.publish("phone", 10)
	f.wants(n, dibs.Granted, "phone", "zero", "k")

	type answer struct {
		res dibs.Result
		err error
	}
	answers := make(chan answer, 2)
	claim := func(user string) {
		res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: user, Key: "k"})
		answers <- answer{res, err}
	}
	granted := func() int64 {
		st, err := n.engine.Stats(f.Context(), dibs.ShardID{Campaign: 1})
		must(t, err)
		return st.Granted
	}
	release := f.holdLedger()
	// The first is being settled, the second waits behind it.
	go claim("first")
	f.until("the first grant", func() bool { return granted() == 2 })
	pause(f.Context(), 300*time.Millisecond)
	go claim("second")
	f.until("the second grant", func() bool { return granted() == 3 })
	redisDo(t, f, "FLUSHALL")
	release()
	for range 2 {
		a := <-answers
		if a.err != nil || a.res.Outcome != dibs.Granted {
			continue
		}
		if _, err := n.ledger.Claim(f.Context(), a.res.Claim.Position); err != nil {
			t.Errorf("%s has a yes at %v, and the ledger has: %v", a.res.Claim.UserID, a.res.Claim.Position, err)
		}
	}
}

// A campaign that was ended by a node that died before it told Redis is ended.
func TestAnEndInTheLedgerIsFollowed(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 100)
	for i, n := range f.nodes {
		f.wants(n, dibs.Granted, "phone", "user-"+string(rune('a'+i)), "k")
	}
	c, err := f.nodes[0].ledger.Campaign(f.Context(), "phone")
	must(t, err)
	c.State = dibs.EndedState
	must(t, f.nodes[0].ledger.UpdateCampaign(f.Context(), c))
	for i, n := range f.nodes {
		f.until("everybody is refused", func() bool {
			res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: fmt.Sprintf("late-%d-%d", i, time.Now().UnixNano())})
			return err == nil && res.Outcome == dibs.Ended
		})
	}
}

// clock is a clock that tests set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// keysOfFirst lists what Redis holds of the first campaign, but its journal and where
// that ended.
func (f *fleet) keysOfFirst() (keys []string) {
	f.Helper()
	m, err := f.redis.Do(f.Context(), "KEYS", "dibs:*{1:0}*")
	must(f.T, err)
	list, err := m.AsStrSlice()
	must(f.T, err)
	for _, k := range list {
		if !strings.HasSuffix(k, ":journal") && !strings.HasSuffix(k, ":end") {
			keys = append(keys, k)
		}
	}
	return keys
}

// Nothing of a campaign stays in Redis, whatever happened between its end and
// the time when it leaves.
func TestNothingStaysInRedis(t *testing.T) {
	for name, meanwhile := range map[string]func(f *fleet){
		"nothing happens": func(*fleet) {},
		"Redis is started again": func(f *fleet) {
			f.redis.Kill()
			must(f.T, f.redis.Start())
		},
		"all nodes are started again": func(f *fleet) {
			f.nodes[0].close(f.T)
			f.join()
		},
		"all are started again": func(f *fleet) {
			f.nodes[0].close(f.T)
			f.redis.Kill()
			must(f.T, f.redis.Start())
			f.join()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 0)
			var at clock
			f.tune = node.ServiceConfig{Now: at.now, TidyEvery: 50 * time.Millisecond}
			f.join()
			f.publish("phone", 10)
			if n := f.rush("phone", 10); n != 10 {
				t.Fatalf("%d of 10", n)
			}
			if len(f.keysOfFirst()) == 0 {
				t.Fatal("there is nothing in Redis")
			}
			_, err := f.nodes[0].Campaigns.End(f.Context(), "phone")
			must(t, err)
			meanwhile(f)
			at.ahead.Store(int64(6 * time.Minute))
			f.until("Redis is empty", func() bool { return len(f.keysOfFirst()) == 0 })
			m, err := f.redis.Do(f.Context(), "PTTL", "dibs:{1:0}:journal")
			must(t, err)
			if ttl, err := m.AsInt64(); err != nil || ttl == -1 {
				t.Errorf("the journal stays for ever: %d, %v", ttl, err)
			}
		})
	}
}

// A campaign that had left comes back for a late payment, through a node that dies with
// it: the others let it leave again within minutes.
func TestACampaignComesBackAndItsNodeDies(t *testing.T) {
	f := newFleet(t, 0)
	var at clock
	f.tune = node.ServiceConfig{Now: at.now, TidyEvery: 50 * time.Millisecond}
	n := f.join()
	f.publish("phone", 10)
	f.rush("phone", 5)
	_, err := n.Campaigns.End(f.Context(), "phone")
	must(t, err)
	at.ahead.Store(int64(6 * time.Minute))
	f.until("Redis is empty", func() bool { return len(f.keysOfFirst()) == 0 })
	// It is seen to have left.
	pause(f.Context(), 500*time.Millisecond)
	dead, err := redisengine.Open(f.Context(), redisengine.Config{URL: f.redis.URL()})
	must(t, err)
	c, err := n.ledger.Campaign(f.Context(), "phone")
	must(t, err)
	server, err := dead.Server(f.Context(), theShard)
	must(t, err)
	load, err := n.ledger.LoadShard(f.Context(), c, theShard, live.Opener{Server: server, Epoch: 1})
	must(t, err)
	must(t, dead.Open(f.Context(), c, theShard, load))
	must(t, dead.Close(f.Context()))
	at.ahead.Store(int64(12 * time.Minute))
	f.until("Redis is empty again", func() bool { return len(f.keysOfFirst()) == 0 })
	totals, err := n.ledger.Totals(f.Context(), theShard)
	must(t, err)
	if totals.Position.Epoch != load.Epoch {
		t.Errorf("the ledger is at %s, and the shard was opened in epoch %d", totals.Position, load.Epoch)
	}
}

// A node whose clock is ahead finds a shard absent, and stands still before it fences it off.
// Another node opens the shard meanwhile, and settles all that it sells: the late fence
// changes nothing, or the engine would never be told what comes back.
func TestALateFenceChangesNothing(t *testing.T) {
	f := newFleet(t, 1)
	f.sellUnpaid("phone", 3)
	f.wants(f.nodes[0], dibs.Granted, "phone", "a", "k")
	settled := func(n *member, released int64) {
		t.Helper()
		f.until("all is settled, and back", func() bool {
			totals, err := n.ledger.Totals(t.Context(), theShard)
			must(t, err)
			st, err := n.engine.Stats(t.Context(), theShard)
			must(t, err)
			return totals.Released == released && totals.Position == st.Head && totals.StockLeft == st.Remaining
		})
	}
	settled(f.nodes[0], 0)
	f.nodes[0].close(t)
	for _, key := range f.keysOfFirst() {
		redisDo(t, f, "DEL", key)
	}
	h := newHolder()
	h.holdAt(fence)
	t.Cleanup(func() { h.free(false) })
	f.tune = node.ServiceConfig{SweepEvery: 5 * time.Millisecond, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }}
	f.wrap = func(cfg *node.ServiceConfig) {
		l := &heldLedger{cfg.Ledger.Live.(*sqlledger.Ledger), h}
		cfg.Ledger.Live, cfg.Ledger.Orders = l, l
	}
	f.join()
	<-h.held
	redisDo(t, f, "DEL", "dibs:{1:0}:settler")
	f.tune, f.wrap = node.ServiceConfig{}, nil
	n := f.join()
	for _, user := range []string{"b", "c", "d"} {
		f.wants(n, dibs.Granted, "phone", user, "k")
	}
	// The clock that is ahead also ends the time to pay.
	settled(n, 4)
	before, err := n.ledger.Totals(t.Context(), theShard)
	must(t, err)
	h.free(false)
	<-h.over
	after, err := n.ledger.Totals(t.Context(), theShard)
	must(t, err)
	if after.Epoch != before.Epoch {
		t.Errorf("the epoch was %d and is %d", before.Epoch, after.Epoch)
	}
	settled(n, 4)
}

// A campaign ends that no node could load: what its journal has is settled soon, not only
// when the campaign would leave the engine.
func TestACampaignEndsThatCouldNotBeLoaded(t *testing.T) {
	f := newFleet(t, 0)
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond}
	f.join()
	f.publish("phone", 10)
	f.rush("phone", 5)
	f.nodes[0].close(t)
	dead, err := redisengine.Open(f.Context(), redisengine.Config{URL: f.redis.URL()})
	must(t, err)
	d, err := dead.Claim(f.Context(), dibs.EngineClaim{Shard: theShard, UserID: "last", Key: 1, Quantity: 1})
	must(t, err)
	must(t, dead.Close(f.Context()))
	f.redis.Kill()
	must(t, f.redis.Start())
	// Another node, which hangs, is loading it.
	redisDo(t, f, "SET", "dibs:{1:0}:settler", "another", "PX", "600000")
	n := f.join()
	_, err = n.Campaigns.End(f.Context(), "phone")
	must(t, err)
	f.until("the last grant is settled", func() bool {
		totals, err := n.ledger.Totals(f.Context(), theShard)
		must(t, err)
		return !totals.Position.Before(d.Grant.Position.Cursor)
	})
}

// A campaign that cannot be loaded does not cost the others their settler.
func TestAStuckLoadLeavesTheOthersAlone(t *testing.T) {
	f := newFleet(t, 1)
	f.publish("phone", 100_000)
	c := dibs.CampaignSpec{
		ID: "stuck", Kind: dibs.Sale, Title: "stuck", StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: new(int64(5))},
	}
	_, err := f.nodes[0].Campaigns.Create(f.Context(), c)
	must(t, err)
	// Another node, which hangs, has it.
	redisDo(t, f, "SET", "dibs:{2:0}:settler", "another", "PX", "60000")
	stuck, err := f.nodes[0].ledger.Campaign(f.Context(), "stuck")
	must(t, err)
	stuck.State = dibs.Published
	must(t, f.nodes[0].ledger.UpdateCampaign(f.Context(), stuck))
	// Each attempt to load it takes three seconds. If the others waited for it, there
	// would be time for few rounds.
	rounds, began := 0, time.Now()
	for time.Since(began) < 7*time.Second || rounds < 10 {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("the other campaign was settled %d times in 30 s", rounds)
		}
		f.wants(f.nodes[0], dibs.Granted, "phone", fmt.Sprint("u", rounds), "k")
		f.until("the other campaign is settled", func() bool {
			st, err := f.nodes[0].Stats(f.Context(), "phone")
			return err == nil && st.JournalBacklog == 0
		})
		rounds++
	}
}

// A campaign that fills every batch does not keep the others from being settled.
func TestCampaignsAreSettledInTurn(t *testing.T) {
	f := newFleet(t, 0)
	f.tune.SettleBatch = 16
	n := f.join()
	const calm = 8
	f.publish("hot", 3000)
	for i := range calm {
		f.publish("calm-"+string(rune('a'+i)), 10)
	}
	release := f.holdLedger()
	f.rush("hot", 3000)
	for i := range calm {
		f.wants(n, dibs.Granted, "calm-"+string(rune('a'+i)), "user", "k")
	}
	release()
	at := func(campaign uint32) uint32 {
		totals, err := n.ledger.Totals(f.Context(), dibs.ShardID{Campaign: campaign})
		must(t, err)
		return totals.Position.Seq
	}
	f.until("the calm ones are settled", func() bool {
		hot := at(1)
		for i := range uint32(calm) {
			if at(2+i) < 2 {
				if hot > 2000 {
					t.Fatalf("campaign %d waits while %d of another one are settled", 2+i, hot)
				}
				return false
			}
		}
		return true
	})
}

// A load that was broken off after it had raised the ledger's epoch is made good
// for: new nodes join, and restocks arrive.
func TestABrokenOffLoadIsMadeGoodFor(t *testing.T) {
	f := newFleet(t, 0)
	f.tune.TidyEvery = 200 * time.Millisecond
	first := f.join()
	f.publish("phone", 10)
	f.rush("phone", 5)
	c, err := first.ledger.Campaign(f.Context(), "phone")
	must(t, err)
	id := dibs.ShardID{Campaign: 1}
	server, err := first.engine.Server(f.Context(), id)
	must(t, err)
	_, err = first.ledger.LoadShard(f.Context(), c, id, live.Opener{Server: server})
	must(t, err)
	_, err = first.Campaigns.ChangeStock(f.Context(), "phone", dibs.StockChange{Delta: 7}, "ref")
	must(t, err)
	f.until("the restock", func() bool {
		v, err := first.Stats(f.Context(), "phone")
		return err == nil && v.Remaining == 12
	})
	second := f.join()
	f.wants(second, dibs.Granted, "phone", "new", "k")
	f.verify()
}

// After the end of a campaign Redis is started again: nobody loads it any more,
// and its repeats, and verify, are answered all the same.
func TestRedisRestartsAfterTheEnd(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 10)
	f.rush("phone", 8)
	release := f.holdLedger()
	yes := f.wants(f.nodes[0], dibs.Granted, "phone", "late", "k")
	c, err := f.nodes[0].Live.Registry.Get(f.Context(), "phone")
	must(t, err)
	// As the engine has it; the ledger is told when it answers again.
	ended := *c
	ended.State, ended.Version = dibs.EndedState, c.Version+1
	must(t, f.nodes[0].engine.Configure(f.Context(), &ended))
	f.redis.Kill()
	must(t, f.redis.Start())
	release()
	for _, n := range f.nodes {
		c, err := n.ledger.Campaign(f.Context(), "phone")
		must(t, err)
		if c.State == dibs.Published {
			_, err = n.Campaigns.End(f.Context(), "phone")
			must(t, err)
		}
	}
	for i, n := range f.nodes {
		f.until("a repeat is answered", func() bool {
			res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "late", Key: "k"})
			if err != nil {
				return false
			}
			if res.Outcome != dibs.Granted || res.Claim.ID != yes.Claim.ID {
				t.Fatalf("node %d answers the repeat of a yes with %s", i, res.Outcome)
			}
			return true
		})
	}
	f.redis.Kill()
	must(t, f.redis.Start())
	f.verify()
}
