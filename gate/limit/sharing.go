package limit

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// period is how often nodes share, hold how long a share is held without being
	// asked for again.
	period = 100 * time.Millisecond
	hold   = time.Second
	// aliveEvery is how often a node says that it is there, aliveFor how long that
	// counts.
	aliveEvery = time.Second
	aliveFor   = 5 * time.Second
	// roundTime bounds one round of sharing.
	roundTime = 2 * time.Second
	// hotShards and hotMost bound the names of each kind that are told of: the most
	// of them in each shard.
	hotShards = 16
	hotMost   = 1024
	// debtsMost is the most keys in one call.
	debtsMost = 512
)

var (
	//go:embed lua/share.lua
	shareText string
	//go:embed lua/debts.lua
	debtsText string
)

// sharing is what nodes tell one another through Redis, in the background.
//
// One goroutine, the loop, speaks to Redis and sets the shares; no claim waits for it. mu
// guards which buckets there are, and may be taken while Limiter.making is held. The shares
// that Redis gives out of a bucket are never more than the whole; while it does not answer,
// each node keeps the share that it has.
type sharing struct {
	l *Limiter
	// c is the connection to the Redis at url; the loop's.
	c            rueidis.Client
	url          string
	node         string
	share, debts *rueidis.Lua
	// nodes is how many there are, as far as is known.
	nodes   atomic.Int64
	aliveAt time.Time
	// failing says that the last round failed; the loop's.
	failing bool

	mu      sync.Mutex
	buckets map[*bucket]*demand

	// hot has hotShards shards of each kind, one kind after the other.
	hot [int(kinds) * hotShards]hotKeys

	life   context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
}

// demand is how much was asked of a bucket lately; the loop's.
type demand struct {
	lately int64
	heldAt time.Time
}

// hotKeys are names of one kind near their limits, hotMost at most. mu guards keys, and is
// held for no call of Redis.
type hotKeys struct {
	table *table
	mu    sync.Mutex
	keys  map[uint64]*debt
}

// debt is what was used of a name's bucket since nodes were told.
type debt struct {
	each, used int64
}

func newSharing(l *Limiter) (*sharing, error) {
	at := l.cfg.Redis()
	c, err := l.connect(at)
	if err != nil {
		return nil, err
	}
	s := &sharing{
		l: l, c: c, url: at, node: cmp.Or(l.cfg.Node, rand.Text()[:12]), buckets: make(map[*bucket]*demand),
		share: rueidis.NewLuaScript(shareText), debts: rueidis.NewLuaScript(debtsText),
	}
	s.nodes.Store(1)
	for i := range s.hot {
		s.hot[i].keys, s.hot[i].table = make(map[uint64]*debt), l.tables[i/hotShards]
	}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// connect connects to a Redis.
func (l *Limiter) connect(at string) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(at)
	if err != nil {
		return nil, errors.New("limit: Config.Redis is no address of Redis")
	}
	opt.DisableCache, opt.DisableRetry = true, true
	if l.cfg.Login != nil {
		logins.Redis(&opt, func() *url.Userinfo { return l.cfg.Login(at) })
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("limit: connecting to Redis: %w", err)
	}
	return c, nil
}

// follow goes to the Redis where nodes share now. The debts told at the one before count
// there until they are forgotten; this node keeps what it knows, and tells it at the new one.
func (s *sharing) follow() error {
	at := s.l.cfg.Redis()
	if at == s.url {
		return nil
	}
	c, err := s.l.connect(at)
	if err != nil {
		return err
	}
	s.c.Close()
	s.c, s.url, s.aliveAt = c, at, time.Time{}
	return nil
}

// start takes the first shares and goes on taking them.
func (s *sharing) start() {
	s.round()
	s.loop.Go(func() {
		// All nodes count what is asked over the same time: shares are weighed by it.
		for range wait.Every(s.life, period) {
			s.round()
		}
	})
}

func (s *sharing) close() {
	s.cancel()
	s.loop.Wait()
	s.c.Close()
}

// firstShare is what a node takes of a limit that it has just met: as much as
// any other.
func (s *sharing) firstShare() int64 { return whole / max(1, s.nodes.Load()) }

// add has a bucket shared.
func (s *sharing) add(b *bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// It is asked for in the next round, whatever is asked of it.
	s.buckets[b] = &demand{lately: 2}
}

// round takes shares of what is used, and tells what users used.
func (s *sharing) round() {
	err := s.follow()
	ctx, cancel := context.WithTimeout(s.life, roundTime)
	defer cancel()
	err = errors.Join(err, s.alive(ctx), s.takeShares(ctx), s.tellDebts(ctx))
	if err != nil && !s.failing && s.life.Err() == nil {
		s.l.log.Warn("limits cannot be shared with other nodes; this node keeps its shares", "err", err)
	}
	s.failing = err != nil
	if s.life.Err() == nil {
		s.l.seen.shared(err)
	}
	s.l.making.Lock()
	defer s.l.making.Unlock()
	s.l.forget(s.l.now())
}

// alive says that this node is there, and learns how many are.
func (s *sharing) alive(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.aliveAt) < aliveEvery {
		return nil
	}
	_, nodes, err := s.parse(s.share.Exec(ctx, s.c, []string{"dibs:limit:{nodes}"}, s.shareArgs(0, aliveFor)))
	if err == nil {
		s.nodes.Store(nodes)
		s.aliveAt = now
	}
	return err
}

func (s *sharing) shareArgs(asked int64, keep time.Duration) []string {
	return []string{s.node, strconv.FormatInt(asked, 10), strconv.FormatInt(keep.Milliseconds(), 10)}
}

func (s *sharing) parse(r rueidis.RedisResult) (share, nodes int64, err error) {
	list, err := r.AsIntSlice()
	if err != nil || len(list) != 2 {
		return 0, 0, errors.Join(err, r.Error())
	}
	return list[0], list[1], nil
}

// takeShares asks for shares of the buckets that are in use. One that nobody
// asked anything of is let go, and taken again as if just met.
func (s *sharing) takeShares(ctx context.Context) error {
	now := time.Now()
	var list []*bucket
	var calls []rueidis.LuaExec
	s.mu.Lock()
	for b, d := range s.buckets {
		asked := b.asked.Swap(0)
		d.lately = d.lately/2 + asked
		if d.lately > 0 {
			d.heldAt = now
			list = append(list, b)
			calls = append(calls, rueidis.LuaExec{Keys: []string{"dibs:limit:{" + b.key + "}"}, Args: s.shareArgs(d.lately, hold)})
		} else if now.Sub(d.heldAt) > hold {
			b.resize(s.firstShare(), s.l.now())
		}
	}
	s.mu.Unlock()
	if len(calls) == 0 {
		return nil
	}
	var errs []error
	for i, r := range s.share.ExecMulti(ctx, s.c, calls...) {
		share, _, err := s.parse(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list[i].resize(share, s.l.now())
	}
	return errors.Join(errs...)
}

// used notes that a name near its limit used it. A name that is not near costs
// nothing: others would not let through less for knowing.
func (s *sharing) used(r *rule, key uint64, ahead int64) {
	if 2*ahead < r.slack+r.each {
		return
	}
	h := &s.hot[uint64(r.kind)*hotShards+key%hotShards]
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.keys[key]; d != nil {
		d.used++
	} else if len(h.keys) < hotMost {
		// Uses from before count too.
		h.keys[key] = &debt{each: r.each, used: max(1, (ahead+r.each/2)/r.each)}
	}
}

// told is what is told of a name.
type told struct {
	shard *hotKeys
	key   uint64
	debt  debt
}

// tellDebts tells what users used here, and learns what they used everywhere.
func (s *sharing) tellDebts(ctx context.Context) error {
	var all []told
	for i := range s.hot {
		h := &s.hot[i]
		h.mu.Lock()
		for key, d := range h.keys {
			all = append(all, told{h, key, *d})
			d.used = 0
		}
		h.mu.Unlock()
	}
	var errs []error
	for len(all) > 0 {
		n := min(len(all), debtsMost)
		errs = append(errs, s.tell(ctx, all[:n]))
		all = all[n:]
	}
	return errors.Join(errs...)
}

// tell is one call of tellDebts. Debts that could not be told are told the next time.
func (s *sharing) tell(ctx context.Context, part []told) error {
	keys, args := make([]string, len(part)), make([]string, 0, 2*len(part))
	for i := range part {
		keys[i] = "dibs:limit:{users}:" + strconv.FormatUint(part[i].key, 36)
		each := max(1, part[i].debt.each/int64(time.Microsecond))
		args = append(args, strconv.FormatInt(each, 10), strconv.FormatInt(part[i].debt.used, 10))
	}
	ahead, err := s.debts.Exec(ctx, s.c, keys, args).AsIntSlice()
	if err == nil && len(ahead) != len(part) {
		err = errors.New("limit: Redis answered for other users than were asked for")
	}
	now := s.l.now()
	for i := range part {
		p := &part[i]
		p.shard.mu.Lock()
		d := p.shard.keys[p.key]
		switch {
		case d == nil:
		case err != nil:
			d.used += p.debt.used
		case ahead[i] <= 0 && d.used == 0:
			delete(p.shard.keys, p.key)
		}
		p.shard.mu.Unlock()
		if err == nil && ahead[i] > 0 {
			moment := now + ahead[i]*int64(time.Microsecond)
			p.shard.table.with(p.key, func(m int64) int64 { return max(m, moment) })
		}
	}
	return err
}

// drop ends the sharing of buckets.
func (s *sharing) drop(buckets []*bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range buckets {
		delete(s.buckets, b)
	}
}
