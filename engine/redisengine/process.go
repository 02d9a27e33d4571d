package redisengine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/internal/histogram"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// process is what all parts of an open engine share: its settings, the connection,
// the names by which Redis knows this process, and the engine's end.
//
// cfg, redis, log, since, node and name do not change once the engine is open.
// closed is set once, under mu, and start counts a goroutine under mu too: so none
// starts after closed was set, and Close may wait for running. stop is closed after
// closed was set, and ends whatever waits.
type process struct {
	cfg    Config
	redis  conn.Server
	log    *slog.Logger
	since  time.Time // the local clock counts from here
	node   uint32    // this process among all, by chance
	name   string    // the same, for its leases
	tokens atomic.Uint32
	stats  *histogram.EngineCounts
	level  level
	// inFlight counts the calls of claims that are under way, those of all shards.
	inFlight atomic.Int64
	// products returns the product whose limit a campaign shares; nil before it is set.
	products atomic.Pointer[func(campaign uint32) (string, error)]
	// appended is signalled after entries of this process became durable.
	appended chan struct{}

	mu      sync.Mutex
	closed  atomic.Bool
	running sync.WaitGroup // followers, surveys, and the watch on the level
	stop    chan struct{}
}

// errClosed refuses what comes after Close.
var errClosed = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: the engine is closed"))

// newProcess returns what an engine begins with; it is not connected.
func newProcess(cfg Config) *process {
	var node [4]byte
	// It never fails.
	_, _ = rand.Read(node[:])
	p := &process{
		cfg: cfg, log: cfg.Logger, since: time.Now(), node: binary.BigEndian.Uint32(node[:]), name: rand.Text(),
		stop: make(chan struct{}), appended: make(chan struct{}, 1), stats: histogram.NewEngineCounts(),
	}
	p.level.cfg, p.level.log = &p.cfg, p.log
	return p
}

// token names one attempt of this process.
func (p *process) token() string {
	var b [8]byte
	binary.BigEndian.PutUint32(b[:], p.node)
	binary.BigEndian.PutUint32(b[4:], p.tokens.Add(1))
	return string(b[:])
}

// keysOf names the keys of a shard. No campaign has the number 0: that is the lease of
// the nodes.
func (p *process) keysOf(id dibs.ShardID) (format.Keys, error) {
	keys, _, err := p.keysIfKnown(id)
	return keys, err
}

// keysIfKnown is keysOf, and reports whether the ledger has the campaign. Without it the keys
// may be wrong: whether a product names them is in the ledger alone.
func (p *process) keysIfKnown(id dibs.ShardID) (keys format.Keys, known bool, err error) {
	f := p.products.Load()
	if f == nil || id.Campaign == 0 {
		return format.KeysOf(id, ""), true, nil
	}
	product, err := (*f)(id.Campaign)
	if errors.Is(err, dibs.ErrNotFound) {
		return format.KeysOf(id, ""), false, nil
	}
	if err != nil {
		return format.Keys{}, false, dibs.AsUnavailable(fmt.Errorf("redisengine: the product of shard %s: %w", id, err), dibs.EffectNone)
	}
	return format.KeysOf(id, product), true, nil
}

// localMS is a clock that no one sets, in ms.
func (p *process) localMS() int64 { return time.Since(p.since).Milliseconds() }

// signal tells the readers of the journal that there is more; see dibs.Journal.
func (p *process) signal() { wait.Kick(p.appended) }

// start runs f in a goroutine that Close waits for; false, without f, once closed.
func (p *process) start(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return false
	}
	p.running.Go(f)
	return true
}

// end has nothing start any more; false when it was called before.
func (p *process) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Swap(true) {
		return false
	}
	close(p.stop)
	return true
}

// call runs a command that changes nothing.
func (p *process) call(ctx context.Context, command, key string, args ...string) (conn.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Patience)
	defer cancel()
	r, err := p.redis.Call(ctx, command, key, args...)
	if err != nil {
		return r, conn.Fault(ctx, dibs.EffectNone, err)
	}
	return r, nil
}

// hget reads a field of a hash; none where the key is not a hash.
func (p *process) hget(ctx context.Context, key, field string) (conn.Reply, error) {
	r, err := p.call(ctx, "HGET", key, field)
	if conn.Says(err, "WRONGTYPE") {
		return conn.Reply{None: true}, nil
	}
	return r, err
}

// step runs a script that takes no place seen, and returns its refusal as an error.
func (p *process) step(ctx context.Context, s *conn.Script, keys []string, args ...string) (conn.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Patience)
	defer cancel()
	res, err := conn.ResultOf(ctx, p.redis, s, keys, args...)
	if err != nil {
		return res, conn.Fault(ctx, dibs.EffectUnknown, err)
	}
	return res, conn.Refusal(&res)
}

// prepare checks Redis and makes it ready.
func (p *process) prepare(ctx context.Context, c *conn.Client) error {
	replicas, err := p.level.look(ctx, c)
	if err != nil {
		return err
	}
	if p.cfg.Durability == dibs.LevelReplicated {
		p.cfg.Replicas = cmp.Or(p.cfg.Replicas, replicas)
		c.Await(p.cfg.Replicas, p.cfg.Deadline/2)
	}
	return c.Load(ctx)
}
