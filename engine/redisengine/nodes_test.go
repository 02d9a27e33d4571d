package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
)

// fleet is some nodes on one Redis and one ledger.
type fleet struct {
	*testing.T
	redis  *servers.Redis
	ledger string
	tune   node.ServiceConfig
	engine redisengine.Config
	// wrap, when it is set, changes what the next nodes are made of.
	wrap  func(*node.ServiceConfig)
	nodes []*member
}

// member is one of a fleet's, with connections of its own.
type member struct {
	*node.Service
	engine *redisengine.Engine
	ledger *sqlledger.Ledger
}

// ledgerTime is how long a fleet's ledger may take: a machine that tests other
// packages too is slow at times.
const ledgerTime = 30 * time.Second

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{T: t, redis: startRedis(t, servers.RedisAlways...), ledger: "sqlite:" + filepath.Join(freshLedger(t), "ledger.db")}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			n.close(t)
		}
	})
	for range n {
		f.join()
	}
	return f
}

// freshLedger is a folder with an empty ledger.
func freshLedger(t *testing.T) string {
	return fresh.Folder(t, "ledger", func(dir string) error {
		l, err := sqlledger.OpenSQLite(context.Background(), filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		return l.Close()
	})
}

func (f *fleet) engineConfig() redisengine.Config {
	ec := f.engine
	ec.URL = f.redis.URL()
	return ec
}

// join adds a node.
func (f *fleet) join() *member {
	f.Helper()
	log := slog.New(slog.NewTextHandler(f.Output(), nil))
	ctx := f.Context()
	ec := f.engineConfig()
	ec.Logger = log
	e, err := redisengine.Open(ctx, ec)
	if err != nil {
		f.Fatal(err)
	}
	l, err := sqlledger.Open(ctx, f.ledger, sqlledger.Options{Migrate: true, Timeout: ledgerTime})
	if err != nil {
		f.Fatal(err)
	}
	ids, err := idgen.ForClaims(ctx, l)
	if err != nil {
		f.Fatal(err)
	}
	cfg := f.tune
	cfg.Engine, cfg.Ledger, cfg.IDs, cfg.Logger, cfg.LedgerTimeout = e, l.Parts(), ids, log, ledgerTime
	if f.wrap != nil {
		f.wrap(&cfg)
	}
	s, err := node.NewService(cfg)
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		f.Fatal(err)
	}
	n := &member{Service: s, engine: e, ledger: l}
	f.nodes = append(f.nodes, n)
	return n
}

func (n *member) close(t *testing.T) {
	if n.Service == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := errors.Join(n.Close(ctx), n.engine.Close(ctx), n.ledger.Close())
	n.Service = nil
	if err != nil {
		t.Error(err)
	}
}

// publish publishes a sale through the first node.
func (f *fleet) publish(id string, units int64) {
	f.Helper()
	now := time.Now()
	spec := dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	}
	if _, err := f.nodes[0].Campaigns.Create(f.Context(), spec); err != nil {
		f.Fatal(err)
	}
	if _, err := f.nodes[0].Campaigns.Publish(f.Context(), id); err != nil {
		f.Fatal(err)
	}
}

// wants makes a claim through a node and checks its outcome.
func (f *fleet) wants(n *member, want dibs.Reason, id, user, key string) dibs.Result {
	f.Helper()
	res, err := n.Claims.Claim(f.Context(), dibs.ClaimRequest{CampaignID: id, UserID: user, Key: key})
	if err != nil || res.Outcome != want {
		f.Fatalf("claim of %s on %s: %s, %v, want %s", user, id, res.Outcome, err, want)
	}
	return res
}

// until waits until something holds.
func (f *fleet) until(what string, holds func() bool) {
	f.Helper()
	f.within(20*time.Second, what, holds)
}

func (f *fleet) within(limit time.Duration, what string, holds func() bool) {
	f.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			f.Fatalf("%s have passed without %s", limit, what)
		}
		<-tick.C
	}
}

// verify fails the test when a promise is broken, as each node sees it.
func (f *fleet) verify() {
	f.Helper()
	for i, n := range f.nodes {
		if n.Service == nil {
			continue
		}
		report, err := n.Audit.Verify(f.Context())
		if err != nil {
			f.Fatal(err)
		}
		if !report.OK {
			f.Fatalf("node %d sees a promise broken: %+v", i, report)
		}
	}
}

// rush makes users press through all nodes and returns how many were granted.
func (f *fleet) rush(id string, users int) (granted int64) {
	f.Helper()
	var yes atomic.Int64
	var callers sync.WaitGroup
	for c := range 64 {
		callers.Go(func() {
			for u := c; u < users; u += 64 {
				n := f.nodes[u%len(f.nodes)]
				if n.Service == nil {
					continue
				}
				req := dibs.ClaimRequest{CampaignID: id, UserID: fmt.Sprint("u", u), Key: "press"}
				res, err := n.Claims.Claim(f.Context(), req)
				for again := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(again); {
					res, err = f.nodes[u%len(f.nodes)].Claims.Claim(f.Context(), req)
				}
				switch {
				case err != nil:
					f.Errorf("the claim of u%d: %v", u, err)
				case res.Outcome == dibs.Granted:
					yes.Add(1)
				}
			}
		})
	}
	callers.Wait()
	return yes.Load()
}

func TestNodesShareACampaign(t *testing.T) {
	f := newFleet(t, 3)
	f.publish("phone", 200)
	first := f.wants(f.nodes[1], dibs.Granted, "phone", "42", "press")
	again := f.wants(f.nodes[2], dibs.Granted, "phone", "42", "press")
	if !again.Replayed || again.Claim.ID != first.Claim.ID {
		t.Fatalf("the repeat on another node is %+v", again)
	}
	f.wants(f.nodes[0], dibs.LimitReached, "phone", "42", "other")
	for _, n := range f.nodes {
		c, err := n.Claims.Find(t.Context(), first.Claim.ID)
		if err != nil || c.UserID != "42" {
			t.Fatalf("%+v, %v", c, err)
		}
		mine, err := n.Claims.OfUser(t.Context(), "42", dibs.Page{})
		if err != nil || len(mine.Items) != 1 {
			t.Fatalf("%+v, %v", mine, err)
		}
	}
	if _, err := f.nodes[2].Campaigns.Pause(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	for _, n := range f.nodes {
		f.wants(n, dibs.Paused, "phone", "43", "")
		f.wants(n, dibs.Granted, "phone", "42", "press")
	}
	if _, err := f.nodes[1].Campaigns.Resume(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	if n := f.rush("phone", 600); n != 199 {
		t.Fatalf("%d were granted in the rush", n)
	}
	f.verify()
	if _, err := f.nodes[0].Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: 10}, "more"); err != nil {
		t.Fatal(err)
	}
	f.until("new stock", func() bool {
		v, err := f.nodes[2].Stats(t.Context(), "phone")
		return err == nil && v.Remaining == 10
	})
	if _, err := f.nodes[1].Campaigns.ChangeStock(t.Context(), "phone", dibs.StockChange{Delta: -4}, "less"); err != nil {
		t.Fatal(err)
	}
	if n := f.rush("phone", 900); n != 199+6 {
		t.Fatalf("%d were granted in the second rush, repeats included", n)
	}
	f.verify()
}

func TestNodesTakeOver(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 1000)
	f.rush("phone", 300)
	f.nodes[0].close(t)
	f.nodes[0] = f.nodes[1]
	f.join()
	if n := f.rush("phone", 1200); n != 1000 {
		t.Fatalf("%d were granted", n)
	}
	f.verify()
}

func TestNodesRebuildAnEmptyRedis(t *testing.T) {
	f := newFleet(t, 3)
	f.publish("phone", 400)
	if n := f.rush("phone", 250); n != 250 {
		t.Fatalf("%d were granted", n)
	}
	f.verify()
	flush(t, f.redis.Addr())
	if n := f.rush("phone", 600); n != 400 {
		t.Fatalf("%d were granted, repeats included", n)
	}
	f.verify()
	f.redis.Kill()
	if err := f.redis.Start(); err != nil {
		t.Fatal(err)
	}
	f.until("a claim", func() bool {
		res, err := f.nodes[1].Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: "u1", Key: "press"})
		return err == nil && res.Replayed
	})
	f.verify()
}

// flush empties a server.
func flush(t *testing.T, addr string) {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), c.B().Flushall().Build()).Error())
}

// Redis is killed in the middle of a rush and comes back: every press is
// answered in the end, and nobody's yes is lost.
func TestNodesOutliveAKilledRedis(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 1000)
	done := make(chan int64)
	go func() { done <- f.rush("phone", 2000) }()
	for kills := range 3 {
		f.until("more grants", func() bool {
			v, err := f.nodes[0].Stats(t.Context(), "phone")
			return err == nil && v.Granted > int64(kills+1)*150
		})
		f.redis.Kill()
		must(t, f.redis.Start())
	}
	if n := <-done; n != 1000 {
		t.Fatalf("%d were granted", n)
	}
	f.verify()
}

// A change of a campaign through one node is obeyed and shown by the others.
func TestNodesFollowChanges(t *testing.T) {
	f := newFleet(t, 2)
	f.publish("phone", 10)
	f.wants(f.nodes[1], dibs.Granted, "phone", "42", "press")
	title, limit := "Phone at one", int64(3)
	if _, err := f.nodes[0].Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Title: &title, Limit: &limit}); err != nil {
		t.Fatal(err)
	}
	f.wants(f.nodes[1], dibs.Granted, "phone", "42", "again")
	if c, err := f.nodes[1].Live.Registry.Now(t.Context(), "phone"); err != nil || c.Title != title {
		t.Fatalf("%+v, %v", c, err)
	}
	f.until("the new title", func() bool {
		c, err := f.nodes[1].Live.Registry.Get(t.Context(), "phone")
		return err == nil && c.Title == title && c.LimitPerUser == limit
	})
	// A node that has just come has to obey an end at once, too.
	if _, err := f.join().Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	for _, n := range f.nodes {
		f.wants(n, dibs.Ended, "phone", "43", "")
		f.wants(n, dibs.Granted, "phone", "42", "press")
	}
	f.verify()
}

// A campaign that is over leaves Redis, whichever node has its lease, and every
// node; its claims are answered from the ledger then.
func TestNodesLeaveNothingBehind(t *testing.T) {
	f := newFleet(t, 0)
	var ahead atomic.Int64
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	f.engine.KeepRetired = 100 * time.Millisecond
	f.join()
	f.join()
	f.publish("phone", 50)
	first := f.wants(f.nodes[0], dibs.Granted, "phone", "42", "press")
	if n := f.rush("phone", 100); n != 49 {
		t.Fatalf("%d were granted", n)
	}
	if _, err := f.nodes[1].Campaigns.End(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(10 * time.Minute))
	f.until("an empty Redis", func() bool {
		keys, err := f.redis.Do(t.Context(), "DBSIZE")
		must(t, err)
		n, err := keys.ToInt64()
		must(t, err)
		// The fleet lease is no campaign's.
		lease, err := f.redis.Do(t.Context(), "EXISTS", "dibs:{0:0}:settler", "dibs:{1:0}:end")
		must(t, err)
		own, err := lease.ToInt64()
		must(t, err)
		return n == own
	})
	for _, n := range f.nodes {
		again := f.wants(n, dibs.Granted, "phone", "42", "press")
		if !again.Replayed || again.Claim.ID != first.Claim.ID {
			t.Fatalf("the repeat is %+v", again)
		}
		f.wants(n, dibs.Ended, "phone", "43", "")
	}
	f.verify()
}

// A node may die while it brings a campaign back that is over, for a late payment. The
// others take out of Redis what it leaves.
func TestNodesClearBrokenLoads(t *testing.T) {
	f := newFleet(t, 0)
	var ahead atomic.Int64
	f.tune = node.ServiceConfig{TidyEvery: 50 * time.Millisecond, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	f.join()
	f.publish("phone", 50)
	f.wants(f.nodes[0], dibs.Granted, "phone", "42", "press")
	_, err := f.nodes[0].Campaigns.End(t.Context(), "phone")
	must(t, err)
	left := func() bool {
		m, err := f.redis.Do(t.Context(), "EXISTS", "dibs:{1:0}:meta", "dibs:{1:0}:holdings")
		must(t, err)
		n, err := m.ToInt64()
		must(t, err)
		return n == 0
	}
	for range 2 {
		ahead.Add(int64(10*time.Minute + time.Second))
		f.until("a Redis without the campaign", left)
		// The state comes last: the node may forget at once what has one, and looks at nothing else.
		redisDo(t, f, "HSET", "dibs:{1:0}:holdings", "a", "b")
		redisDo(t, f, "PERSIST", "dibs:{1:0}:journal")
		redisDo(t, f, "HSET", "dibs:{1:0}:meta", "state", "loading", "epoch", "7", "token", "dead")
	}
	ahead.Add(int64(10*time.Minute + time.Second))
	f.until("a Redis without the campaign", left)
	m, err := f.redis.Do(t.Context(), "PTTL", "dibs:{1:0}:journal")
	must(t, err)
	if ttl, err := m.ToInt64(); err != nil || ttl <= 0 {
		t.Errorf("the journal of a campaign that is over expires in %d ms, %v", ttl, err)
	}
	f.verify()
}

// Answers wait for the ledger, on the node that settles and on the other one.
func TestNodesAnswerFromTheLedger(t *testing.T) {
	f := newFleet(t, 0)
	f.tune.Ledgered = true
	f.join()
	f.join()
	f.publish("phone", 100)
	for i, n := range f.nodes {
		id := f.wants(n, dibs.Granted, "phone", fmt.Sprint("u", i), "").Claim.Position
		if _, err := n.ledger.Claim(t.Context(), id); err != nil {
			t.Fatalf("node %d answered yes before the ledger had it: %v", i, err)
		}
		if n.Durability() != "ledgered" {
			t.Fatalf("the level is %s", n.Durability())
		}
	}
}
