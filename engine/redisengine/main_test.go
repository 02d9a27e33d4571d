package redisengine_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	leaks.Main(
		m,
		// The driver of a cluster keeps connections that it has replaced for five
		// seconds, and looks at the slots a second later, whether it is closed or not.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		// A proxy forgets what is stuck in a link that is gone.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
	)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// startRedis starts a server that ends with the test.
func startRedis(tb testing.TB, args ...string) *servers.Redis {
	tb.Helper()
	r, err := servers.StartRedis(tb.TempDir(), args...)
	must(tb, err)
	tb.Cleanup(r.Kill)
	return r
}

// retire has an open shard of bigSale's or openSale's forgotten.
func retire(tb testing.TB, e *redisengine.Engine, shard dibs.ShardID) {
	tb.Helper()
	c := bigSale(shard.Campaign, 0)
	c.State, c.Version = dibs.EndedState, math.MaxInt32
	must(tb, e.Configure(context.Background(), c))
	must(tb, e.Retire(context.Background(), shard))
}

// cable connects an engine to its server until it is cut, for good.
type cable struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("the cable is cut")

func (c *cable) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, errors.Join(errCut, conn.Close())
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		// The driver may have closed it before.
		_ = conn.Close()
	}
}

// redisState opens engines on one server, which Kill kills with the engine.
type redisState struct {
	tb    testing.TB
	redis *servers.Redis
	cable *cable
	eng   *redisengine.Engine
}

// redisStates makes the states of a contract on one server, which each check finds empty.
func redisStates(t *testing.T) func(testing.TB, func() time.Time) enginetest.State {
	redis := startRedis(t, servers.RedisAlways...)
	return func(tb testing.TB, _ func() time.Time) enginetest.State {
		_, err := redis.Do(context.Background(), "FLUSHALL")
		must(tb, err)
		return &redisState{tb: tb, redis: redis}
	}
}

func (s *redisState) Open(ctx context.Context) (dibs.Engine, error) {
	s.cable = &cable{}
	eng, err := redisengine.Open(ctx, redisengine.Config{URL: s.redis.URL(), Dial: s.cable.dial})
	s.eng = eng
	return eng, err
}

func (s *redisState) Kill(ctx context.Context) error {
	s.cable.sever()
	s.redis.Kill()
	if err := s.redis.Start(); err != nil {
		return err
	}
	// Only to end its goroutines: it cannot reach the server any more.
	if err := s.eng.Close(ctx); err != nil {
		s.tb.Logf("the killed engine closes with: %v", err)
	}
	return nil
}

// TestContract runs the suite on a real server that syncs always and dies with
// every engine that is killed.
func TestContract(t *testing.T) {
	enginetest.Run(t, enginetest.Factory{New: redisStates(t), OwnClock: true})
}

// TestContractShards is TestContract with campaigns of five shards.
func TestContractShards(t *testing.T) {
	enginetest.Run(t, enginetest.Factory{New: redisStates(t), OwnClock: true, Shards: 5})
}
