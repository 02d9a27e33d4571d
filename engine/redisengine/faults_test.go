package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// link is a network that loses what it is told to lose: the next answers, after
// Redis has given them, or the next requests, before Redis gets them. With
// either, the connection breaks. Held requests arrive when they are let go.
type link struct {
	answers, requests atomic.Int64
	mu                sync.Mutex
	held              chan struct{}
}

type linkConn struct {
	net.Conn
	l *link
}

func (l *link) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	return &linkConn{Conn: c, l: l}, err
}

// loses takes one off a count of things to lose.
func loses(n *atomic.Int64) bool {
	for {
		left := n.Load()
		if left <= 0 {
			return false
		}
		if n.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

func (c *linkConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && loses(&c.l.answers) {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	return n, err
}

func (c *linkConn) Write(p []byte) (int, error) {
	c.l.mu.Lock()
	held := c.l.held
	c.l.mu.Unlock()
	if held != nil {
		<-held
	}
	if loses(&c.l.requests) {
		return 0, errors.Join(io.ErrClosedPipe, c.Close())
	}
	return c.Conn.Write(p)
}

// onlyOnce settles the whole journal and expects n grants, each user's once.
func onlyOnce(t *testing.T, e *redisengine.Engine, shard dibs.ShardID, n int) {
	t.Helper()
	seen := map[string]dibs.Cursor{}
	last := dibs.Cursor{}
	for {
		page, err := e.ReadJournal(t.Context(), shard, last, 1000)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			if !dibs.Continues(last, &page[i]) {
				t.Fatalf("entry %s follows %s", page[i].Cursor, last)
			}
			last = page[i].Cursor
			if page[i].Kind != dibs.EntryGrant {
				continue
			}
			if first, twice := seen[page[i].UserID]; twice {
				t.Fatalf("%s was granted at %s and at %s", page[i].UserID, first, last)
			}
			seen[page[i].UserID] = last
		}
	}
	if len(seen) != n {
		t.Errorf("%d users have a grant, want %d", len(seen), n)
	}
}

// loadUntil has clients claim for new users, with keys or without, until there
// are n grants; each answer is passed to after. Every claim must be a first
// grant: what the network lost, the engine has to find.
func loadUntil(t *testing.T, e *redisengine.Engine, shard dibs.ShardID, n int, after func(i int)) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				req := dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint("user-", i), Quantity: 1}
				if i%3 != 0 {
					req.Key = uint64(i)
				}
				d, err := e.Claim(t.Context(), req)
				if err != nil || d.Outcome != dibs.Granted || d.Replayed {
					t.Errorf("claim %d is %v (replayed: %v), %v", i, d.Outcome, d.Replayed, err)
					return
				}
				after(i)
			}
		})
	}
	wg.Wait()
}

func openSale(t *testing.T, e *redisengine.Engine, stock int64, change func(c *dibs.Campaign)) dibs.ShardID {
	t.Helper()
	c := bigSale(1, stock)
	if change != nil {
		change(c)
	}
	shard := dibs.ShardID{Campaign: 1}
	load := &dibs.ShardLoad{Epoch: 1, StockLeft: stock}
	if c.HasItems() {
		for i := range uint32(stock) {
			load.Items = append(load.Items, fmt.Sprint("item-", i))
			load.FreeItems = append(load.FreeItems, i)
		}
	}
	must(t, e.Open(t.Context(), c, shard, load))
	return shard
}

func withItems(c *dibs.Campaign) { c.Stock.Kind = dibs.Items }

func TestLostAnswersAreFound(t *testing.T) {
	for name, change := range map[string]func(*dibs.Campaign){"units": nil, "items": withItems} {
		t.Run(name, func(t *testing.T) {
			l, n := &link{}, 3000
			e := openEngine(t, redisengine.Config{
				URL: startRedis(t).URL(), Dial: l.dial, Deadline: 100 * time.Millisecond, Patience: 20 * time.Second,
			})
			shard := openSale(t, e, 10_000, change)
			loadUntil(t, e, shard, n, func(i int) {
				if i%150 == 0 {
					l.answers.Add(1)
				}
			})
			l.answers.Store(0)
			onlyOnce(t, e, shard, n)
			for i := range n {
				if i%3 == 2 {
					continue
				}
				user := fmt.Sprint("user-", i+1)
				d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: uint64(i + 1), Quantity: 1})
				if err != nil || !d.Replayed {
					t.Fatalf("the repeat of %s is %v (replayed: %v), %v", user, d.Outcome, d.Replayed, err)
				}
			}
		})
	}
}

func TestLostRequestsAreSentAgain(t *testing.T) {
	l := &link{}
	e := openEngine(t, redisengine.Config{
		URL: startRedis(t).URL(), Dial: l.dial, Deadline: 50 * time.Millisecond, Patience: 20 * time.Second,
	})
	shard := openSale(t, e, 10_000, nil)
	loadUntil(t, e, shard, 2000, func(i int) {
		if i%200 == 0 {
			l.requests.Add(1)
		}
	})
	l.requests.Store(0)
	onlyOnce(t, e, shard, 2000)
}

// A batch that arrives after its deadline is not decided: whoever was told
// meanwhile that there is nothing, was told the truth.
func TestLateBatchesAreNotDecided(t *testing.T) {
	l := &link{}
	r := startRedis(t)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Dial: l.dial, Deadline: 100 * time.Millisecond, Patience: 20 * time.Second})
	shard := openSale(t, e, 10, nil)
	c := connect(t, r)
	begun := clockOf(t, c)
	release := make(chan struct{})
	l.mu.Lock()
	l.held = release
	l.mu.Unlock()
	answered := make(chan dibs.Decision)
	go func() {
		d, err := e.Claim(context.Background(), dibs.EngineClaim{Shard: shard, UserID: "ann", Key: 1, Quantity: 1})
		if err != nil {
			t.Error(err)
		}
		answered <- d
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for clockOf(t, c)-begun < 400 {
		<-tick.C
	}
	l.mu.Lock()
	l.held = nil
	l.mu.Unlock()
	close(release)
	if d := <-answered; d.Outcome != dibs.Granted || d.Replayed || d.Grant.Seq != 2 {
		t.Errorf("the claim is %+v, want one grant at the first place", d)
	}
	onlyOnce(t, e, shard, 1)
}

// clockOf is Redis' time in milliseconds.
func clockOf(t *testing.T, c rueidis.Client) int64 {
	t.Helper()
	v, err := c.Do(t.Context(), c.B().Time().Build()).AsStrSlice()
	must(t, err)
	var s, us int64
	_, err = fmt.Sscan(v[0], &s)
	must(t, err)
	_, err = fmt.Sscan(v[1], &us)
	must(t, err)
	return s*1000 + us/1000
}

// While Redis is gone for longer than anyone waits, callers hear so, and what
// they hear of the effect is true.
func TestGoneServerIsUnavailable(t *testing.T) {
	r := startRedis(t, servers.RedisAlways...)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Deadline: 50 * time.Millisecond, Patience: time.Second})
	// What has to be answered is asked through one that waits for a slow machine.
	patient := openEngine(t, redisengine.Config{URL: r.URL(), Patience: 20 * time.Second})
	shard := openSale(t, patient, 10, nil)
	ask := func(e *redisengine.Engine, user string) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: user, Key: 1, Quantity: 1})
	}
	_, err := ask(patient, "ann")
	must(t, err)
	until(t, "the first answer", func() bool { _, err := ask(e, "ann"); return err == nil })
	r.Kill()
	for range 3 {
		_, err := ask(e, "bob")
		if !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("a claim without a server is %v", err)
		}
	}
	if e.Ping(t.Context()) == nil {
		t.Error("a ping is answered without a server")
	}
	must(t, r.Start())
	untilNotOpen(t, func() error { _, err := ask(e, "bob"); return err })
	reopen(t, patient, shard, 10, 2)
	d, err := ask(patient, "bob")
	if err != nil || d.Outcome != dibs.Granted || d.Grant.Cursor != (dibs.Cursor{Epoch: 2, Seq: 2}) {
		t.Errorf("after the restart the claim is %+v, %v", d, err)
	}
	for _, user := range []string{"ann", "bob"} {
		until(t, "the repeat", func() bool { d, err = ask(e, user); return err == nil })
		if !d.Replayed {
			t.Errorf("after the restart the repeat is %+v", d)
		}
	}
	onlyOnce(t, patient, shard, 2)
}

func TestScriptsAreFlushedUnderLoad(t *testing.T) {
	r := startRedis(t)
	e := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := openSale(t, e, 100_000, nil)
	c := connect(t, r)
	stop, flushes := make(chan struct{}), 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := c.Do(t.Context(), c.B().ScriptFlush().Build()).Error(); err != nil {
				t.Error(err)
				return
			}
			flushes++
		}
	})
	loadUntil(t, e, shard, 5000, func(int) {})
	close(stop)
	wg.Wait()
	onlyOnce(t, e, shard, 5000)
	if flushes < 20 {
		t.Errorf("only %d flushes happened", flushes)
	}
}

// A server that comes back with less than it had must not answer from it: the
// shard is refused until it is opened in a new epoch.
func TestForkIsRefused(t *testing.T) {
	dir := t.TempDir()
	r, err := servers.StartRedis(dir, servers.RedisAlways...)
	must(t, err)
	t.Cleanup(r.Kill)
	e := openEngine(t, redisengine.Config{URL: r.URL(), Patience: time.Second})
	shard := openSale(t, e, 10, func(c *dibs.Campaign) { c.LimitPerUser = 10 })
	ask := func(key uint64) (dibs.Decision, error) {
		return e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: "ann", Key: key, Quantity: 1})
	}
	_, err = ask(1)
	must(t, err)
	aof, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	must(t, err)
	if len(aof) != 1 {
		t.Fatalf("%d files to cut", len(aof))
	}
	kept, err := os.Stat(aof[0])
	must(t, err)
	lost, err := ask(2)
	must(t, err)
	r.Kill()
	must(t, os.Truncate(aof[0], kept.Size()))
	must(t, r.Start())
	// The connection of before may be found broken, once.
	untilNotOpen(t, func() error { _, err := ask(1); return err })
	for key := range uint64(3) {
		if _, err := ask(key + 1); !errors.Is(err, dibs.ErrNotOpen) {
			t.Errorf("with key %d the forked shard answers %v", key+1, err)
		}
	}
	if _, err := e.Stats(t.Context(), shard); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("the forked shard is counted: %v", err)
	}
	// The ledger had settled both.
	load := &dibs.ShardLoad{Epoch: 2, Position: lost.Grant.Cursor, StockLeft: 8}
	for key := range uint64(2) {
		load.Holdings = append(load.Holdings, dibs.Holding{
			Cursor: dibs.Cursor{Epoch: 1, Seq: uint32(key) + 2}, UserID: "ann", Key: key + 1, Quantity: 1, At: lost.Grant.At,
		})
	}
	c := bigSale(1, 10)
	c.LimitPerUser = 10
	must(t, e.Open(t.Context(), c, shard, load))
	d, err := ask(2)
	if err != nil || !d.Replayed || d.Grant.Position != lost.Grant.Position {
		t.Errorf("rebuilt, the repeat is %+v, %v", d, err)
	}
	d, err = ask(3)
	if err != nil || d.Grant.Cursor != (dibs.Cursor{Epoch: 2, Seq: 2}) {
		t.Errorf("rebuilt, a claim is %+v, %v", d, err)
	}
}

// Of two loaders of a shard, the one with the later epoch wins.
func TestLaterLoaderWins(t *testing.T) {
	r := startRedis(t)
	a := openEngine(t, redisengine.Config{URL: r.URL()})
	b := openEngine(t, redisengine.Config{URL: r.URL()})
	shard := openSale(t, a, 10, nil)
	c := bigSale(1, 10)
	must(t, b.Open(t.Context(), c, shard, &dibs.ShardLoad{Epoch: 3, Position: dibs.Cursor{Epoch: 1, Seq: 1}, StockLeft: 10}))
	err := a.Open(t.Context(), c, shard, &dibs.ShardLoad{Epoch: 2, Position: dibs.Cursor{Epoch: 1, Seq: 1}, StockLeft: 10})
	if !errors.Is(err, dibs.ErrStale) {
		t.Errorf("the earlier epoch is opened: %v", err)
	}
	for i, e := range []*redisengine.Engine{a, b, a} {
		d, err := e.Claim(t.Context(), dibs.EngineClaim{Shard: shard, UserID: fmt.Sprint(i), Key: 1, Quantity: 1})
		if err != nil || d.Grant.Cursor != (dibs.Cursor{Epoch: 3, Seq: uint32(i) + 2}) {
			t.Errorf("claim %d of both engines is %+v, %v", i, d, err)
		}
	}
	entries, err := a.ReadJournal(t.Context(), shard, dibs.Cursor{}, math.MaxInt)
	if err != nil || len(entries) != 5 {
		t.Errorf("the journal has %+v, %v", entries, err)
	}
}
