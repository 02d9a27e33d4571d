package router_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/engine/router"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// book keeps where shards are, as a ledger does. Shards of campaigns that are past are not
// listed.
type book struct {
	mu   sync.Mutex
	on   map[dibs.ShardID]int
	past map[dibs.ShardID]bool
}

func (b *book) DeploymentOf(_ context.Context, id dibs.ShardID) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on[id], nil
}

func (b *book) Placements(context.Context, time.Time) (map[dibs.ShardID]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	listed := maps.Clone(b.on)
	maps.DeleteFunc(listed, func(id dibs.ShardID, _ int) bool { return b.past[id] })
	return listed, nil
}

func (b *book) put(id dibs.ShardID, number int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on[id] = number
}

// pass has the campaign of a shard be past.
func (b *book) pass(id dibs.ShardID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past[id] = true
}

// noting is a router whose placements are noted with each opening, as the load from the
// ledger notes them.
type noting struct {
	*router.Engine
	book *book
}

func (n *noting) Open(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, load *dibs.ShardLoad) error {
	number, err := n.NumberOf(ctx, id)
	if err != nil {
		return err
	}
	n.book.put(id, number)
	return n.Engine.Open(ctx, c, id, load)
}

// site is some servers, and a router over them.
type site struct {
	tb    testing.TB
	redis []*servers.Redis
	book  *book
	eng   *noting
	// cut ends the connections of the router that was opened last, for good.
	cut func()
}

// newSite starts servers that end with the test.
func newSite(tb testing.TB, n int) *site {
	tb.Helper()
	return siteOn(tb, started(tb, n))
}

func siteOn(tb testing.TB, redis []*servers.Redis) *site {
	return &site{tb: tb, redis: redis, book: &book{on: map[dibs.ShardID]int{}, past: map[dibs.ShardID]bool{}}}
}

// started are n servers that end with the test.
func started(tb testing.TB, n int) (all []*servers.Redis) {
	tb.Helper()
	for range n {
		r, err := servers.StartRedis(tb.TempDir(), servers.RedisAlways...)
		must(tb, err)
		tb.Cleanup(r.Kill)
		all = append(all, r)
	}
	return all
}

// sites makes the states of a contract on two servers, which each check finds empty.
func sites(t *testing.T) func(testing.TB, func() time.Time) enginetest.State {
	both := started(t, 2)
	return func(tb testing.TB, _ func() time.Time) enginetest.State {
		for _, r := range both {
			_, err := r.Do(context.Background(), "FLUSHALL")
			must(tb, err)
		}
		return siteOn(tb, both)
	}
}

// Open opens a router over all servers.
func (s *site) Open(ctx context.Context) (dibs.Engine, error) {
	var mu sync.Mutex
	var conns []net.Conn
	severed := false
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if severed {
			return nil, errors.Join(errors.New("the cable is cut"), conn.Close())
		}
		conns = append(conns, conn)
		return conn, nil
	}
	s.cut = func() {
		mu.Lock()
		defer mu.Unlock()
		severed = true
		for _, c := range conns {
			// The driver may have closed it before.
			_ = c.Close()
		}
	}
	var members []router.Member
	for i, r := range s.redis {
		e, err := redisengine.Open(ctx, redisengine.Config{URL: r.URL(), Dial: dial})
		if err != nil {
			return nil, err
		}
		members = append(members, router.Member{Number: i + 1, Engine: e})
	}
	e, err := router.New(ctx, router.Config{Members: members, Ledger: s.book})
	if err != nil {
		return nil, err
	}
	s.eng = &noting{e, s.book}
	return s.eng, nil
}

// Kill ends the router and the servers, and starts the servers again.
func (s *site) Kill(ctx context.Context) error {
	s.cut()
	for _, r := range s.redis {
		r.Kill()
		if err := r.Start(); err != nil {
			return err
		}
	}
	// Only to end its goroutines: it cannot reach the servers any more.
	if err := s.eng.Close(ctx); err != nil {
		s.tb.Logf("the killed engine closes with: %v", err)
	}
	return nil
}

// TestContract runs the suite of all engines over two servers. Its campaigns have five shards:
// one of a single shard is all on one server, whose engine has a contract of its own.
func TestContract(t *testing.T) {
	enginetest.Run(t, enginetest.Factory{New: sites(t), OwnClock: true, Shards: 5})
}

// opened opens a router over servers until the test ends.
func opened(t *testing.T, n int) *site {
	t.Helper()
	s := newSite(t, n)
	_, err := s.Open(t.Context())
	must(t, err)
	t.Cleanup(func() {
		if err := s.eng.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sell opens a sale, on a deployment when that is not 0.
func (s *site) sell(number uint32, on int) dibs.ShardID {
	s.tb.Helper()
	id := dibs.ShardID{Campaign: number}
	if on != 0 {
		s.book.put(id, on)
	}
	s.open(id, 1)
	return id
}

// open opens a shard in an epoch, by a ledger that has settled nothing.
func (s *site) open(id dibs.ShardID, epoch uint16) {
	s.tb.Helper()
	now := time.Now()
	c := &dibs.Campaign{
		Number: id.Campaign, Kind: dibs.Sale, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), State: dibs.Published,
		Stock: dibs.Stock{Kind: dibs.Units, Total: 10}, LimitPerUser: 5, Shards: 1, Version: 1,
	}
	must(s.tb, s.eng.Open(context.Background(), c, id, &dibs.ShardLoad{Epoch: epoch, StockLeft: 10}))
}

func (s *site) claim(id dibs.ShardID, user string) (dibs.Decision, error) {
	return s.eng.Claim(context.Background(), dibs.EngineClaim{Shard: id, UserID: user, Quantity: 1, Key: 7})
}

func (s *site) granted(id dibs.ShardID, user string) {
	s.tb.Helper()
	if d, err := s.claim(id, user); err != nil || d.Outcome != dibs.Granted {
		s.tb.Fatalf("a claim of %s on shard %s: %s, %v", user, id, d.Outcome, err)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, over := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%s: not within 30s", what)
		}
	}
}

// TestShardsStayWhereTheyAre opens shards on both of two deployments; a third one takes
// part in what is opened later, and in nothing else.
func TestShardsStayWhereTheyAre(t *testing.T) {
	s := opened(t, 2)
	var ids []dibs.ShardID
	for i := range uint32(20) {
		ids = append(ids, s.sell(i+1, 0))
		s.granted(ids[i], "ann")
	}
	before := maps.Clone(s.book.on)
	count := map[int]int{}
	for _, number := range before {
		count[number]++
	}
	if count[1] == 0 || count[2] == 0 {
		t.Fatalf("the shards are on %v", count)
	}
	more, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(more.Kill)
	s.redis = append(s.redis, more)
	must(t, s.eng.Close(t.Context()))
	_, err = s.Open(t.Context())
	must(t, err)
	for _, id := range ids {
		s.granted(id, "bob")
		if st, err := s.eng.Stats(t.Context(), id); err != nil || st.Remaining != 8 {
			t.Errorf("shard %s has %d left, %v", id, st.Remaining, err)
		}
	}
	for i := range uint32(20) {
		s.granted(s.sell(100+i, 0), "ann")
	}
	third := 0
	for id, number := range s.book.on {
		if was := before[id]; was != 0 && was != number {
			t.Errorf("shard %s moved from deployment %d to %d", id, was, number)
		}
		if number == 3 {
			third++
		}
	}
	if third == 0 {
		t.Error("no shard is on the third deployment")
	}
	grants, err := s.eng.HoldingsOf(t.Context(), "bob")
	if err != nil || len(grants) != len(ids) {
		t.Errorf("bob holds %d grants, %v", len(grants), err)
	}
	listed, err := s.eng.JournalShards(t.Context())
	if err != nil || len(listed) != 40 {
		t.Errorf("%d shards have journals, %v", len(listed), err)
	}
}

// TestOneDeploymentAway kills one of two servers. Claims of its shards are refused at once,
// with its number; the others go on. When it is back it serves what it had.
func TestOneDeploymentAway(t *testing.T) {
	s := opened(t, 2)
	here, there := s.sell(1, 1), s.sell(2, 2)
	s.granted(here, "ann")
	s.granted(there, "ann")
	// The deployment of the nodes' lease dies: they need one all the same.
	s.redis[0].Kill()
	away := func(err error) bool {
		var failed *live.DeploymentError
		return errors.Is(err, dibs.ErrUnavailable) && errors.As(err, &failed) && failed.Number == 1
	}
	until(t, "the deployment is noticed to be away", func() bool {
		_, err := s.claim(here, "ann")
		return away(err)
	})
	quickest := time.Hour
	for range 5 {
		asked := time.Now()
		var failed *dibs.Error
		if _, err := s.claim(here, "bob"); !errors.As(err, &failed) || failed.Effect != dibs.EffectUnknown {
			t.Errorf("a claim with a key is refused: %v", err)
		}
		quickest = min(quickest, time.Since(asked))
	}
	if quickest > time.Second {
		t.Errorf("a claim with a key is refused after %s at the soonest", quickest)
	}
	s.granted(there, "bob")
	if _, err := s.eng.Stats(t.Context(), here); !away(err) {
		t.Errorf("stats of a shard that is away: %v", err)
	}
	if held, err := s.eng.Lease(t.Context(), dibs.ShardID{}, dibs.Cursor{}); err != nil || !held {
		t.Errorf("the lease of the nodes: %t, %v", held, err)
	}
	if _, err := s.eng.HoldingsOf(t.Context(), "ann"); !away(err) {
		t.Errorf("what a user holds, of which a part cannot be asked: %v", err)
	}
	if listed, err := s.eng.JournalShards(t.Context()); !away(err) || !slices.Equal(listed, []dibs.ShardID{there}) {
		t.Errorf("the shards with journals: %v, %v", listed, err)
	}
	must(t, s.eng.Ping(t.Context()))
	if all := s.eng.Abilities().Deployments(t.Context()); all[1] == nil || all[2] != nil {
		t.Errorf("the deployments can decide: %v", all)
	}
	// A new shard goes where it can be opened.
	for i := range uint32(10) {
		s.granted(s.sell(10+i, 0), "ann")
	}
	must(t, s.redis[0].Start())
	// A server that was gone has to be compared with the ledger.
	until(t, "the deployment answers again", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, dibs.ErrNotOpen)
	})
	s.open(here, 2)
	if d, err := s.claim(here, "ann"); err != nil || !d.Replayed {
		t.Errorf("a yes from before: %+v, %v", d, err)
	}
	s.granted(here, "bob")
}

// TestForgottenPlacements: a ledger that was restored from a backup does not know where a
// shard is. Its journal does.
func TestForgottenPlacements(t *testing.T) {
	for on := 1; on <= 2; on++ {
		s := opened(t, 2)
		id := s.sell(1, on)
		s.granted(id, "ann")
		must(t, s.eng.Close(t.Context()))
		clear(s.book.on)
		_, err := s.Open(t.Context())
		must(t, err)
		if number, err := s.eng.NumberOf(t.Context(), id); err != nil || number != on {
			t.Errorf("a shard of deployment %d is looked for on %d, %v", on, number, err)
		}
	}
}

// TestMovedShards: what a deployment has of a shard that was given to another one counts no
// more, on any node, soon after the ledger says so.
func TestMovedShards(t *testing.T) {
	s := opened(t, 2)
	id := s.sell(1, 1)
	s.granted(id, "ann")
	s.book.put(id, 2)
	until(t, "the shard is where the ledger says", func() bool {
		_, err := s.eng.Stats(t.Context(), id)
		return errors.Is(err, dibs.ErrNotOpen)
	})
	if listed, err := s.eng.JournalShards(t.Context()); err != nil || len(listed) != 0 {
		t.Errorf("shards with journals: %v, %v", listed, err)
	}
	if grants, err := s.eng.HoldingsOf(t.Context(), "ann"); err != nil || len(grants) != 0 {
		t.Errorf("ann holds %v, %v", grants, err)
	}
	s.book.put(id, 9)
	until(t, "a deployment that is not named is refused", func() bool {
		_, err := s.claim(id, "ann")
		return errors.Is(err, live.ErrOtherDeployment) && strings.Contains(err.Error(), "deployment 9, which is missing from this node's --engine")
	})
}

// TestMovedShardsOfPastCampaigns: the ledger does not list them, and they are looked for where
// it has them all the same, soon after they were given to another deployment.
func TestMovedShardsOfPastCampaigns(t *testing.T) {
	s := opened(t, 2)
	id := s.sell(1, 1)
	s.granted(id, "ann")
	s.book.pass(id)
	s.granted(id, "bob")
	s.redis[0].Kill()
	until(t, "the deployment is away", func() bool {
		_, err := s.eng.Stats(t.Context(), id)
		return errors.Is(err, live.ErrAway)
	})
	s.book.put(id, 2)
	until(t, "the shard is where the ledger says", func() bool {
		_, err := s.eng.Stats(t.Context(), id)
		return errors.Is(err, dibs.ErrNotOpen)
	})
	s.open(id, 2)
	s.granted(id, "ann")
}
