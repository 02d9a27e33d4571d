package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// stepped is a server with something to do before each question and after each
// answer; an error of either takes the answer's place.
type stepped struct {
	conn.Server
	before, after func(step string) error
}

func (s *stepped) step(name string, do func() (conn.Reply, error)) (conn.Reply, error) {
	if err := s.before(name); err != nil {
		return conn.Reply{}, err
	}
	r, err := do()
	if failed := s.after(name); failed != nil {
		return conn.Reply{}, failed
	}
	return r, err
}

func (s *stepped) Call(ctx context.Context, command, key string, args ...string) (conn.Reply, error) {
	return s.step(command, func() (conn.Reply, error) { return s.Server.Call(ctx, command, key, args...) })
}

func (s *stepped) Run(ctx context.Context, script *conn.Script, keys []string, args ...string) (conn.Reply, error) {
	return s.step(script.Name, func() (conn.Reply, error) { return s.Server.Run(ctx, script, keys, args...) })
}

func nothing(string) error { return nil }

// ofProduct is the first number of campaigns with a limit per product in these tests.
const ofProduct = 1000

// productOf is the product whose limit a campaign shares.
func productOf(campaign uint32) (string, error) {
	if campaign < ofProduct {
		return "", nil
	}
	return "phone", nil
}

// keysIn are the keys of a shard in these tests.
func keysIn(id dibs.ShardID) format.Keys {
	product, _ := productOf(id.Campaign)
	return format.KeysOf(id, product)
}

// openOn opens an engine that ends with the test.
func openOn(t *testing.T, r *servers.Redis) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{URL: r.URL(), Durability: dibs.LevelNone, KeepRetired: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e.Abilities().Products(productOf)
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// overSale is a campaign that was over an hour ago, and a load of it that takes
// several steps.
func overSale(number uint32, epoch uint16) (*dibs.Campaign, *dibs.ShardLoad) {
	c := openCampaign(20_000)
	c.Number, c.EndsAt, c.Stock.Kind = number, time.Now().Add(-time.Hour), dibs.Items
	c.StartsAt = c.EndsAt.Add(-time.Hour)
	if number >= ofProduct {
		c.ProductID, c.LimitPerProduct = keysIn(dibs.ShardID{Campaign: number}).Product, 1
	}
	load := &dibs.ShardLoad{Epoch: epoch, StockLeft: 5000, Refs: []string{"less"}}
	for i := range uint32(10_000) {
		load.Items = append(load.Items, fmt.Sprint("item-", i))
		if i < 5000 {
			load.FreeItems = append(load.FreeItems, i)
			continue
		}
		load.Holdings = append(load.Holdings, dibs.Holding{
			Cursor: dibs.Cursor{Epoch: 1, Seq: i}, UserID: fmt.Sprint("user-", i), Quantity: 1, At: c.StartsAt.UnixMilli(), Items: []uint32{i},
		})
	}
	if epoch > 1 {
		load.Position = dibs.Cursor{Epoch: epoch - 1, Seq: 1}
	}
	return c, load
}

// keysLeft are all keys but leases.
func keysLeft(t *testing.T, e *Engine) []string {
	t.Helper()
	r, err := e.p.redis.Ask(t.Context(), "KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range r.List {
		// Where a journal ended is known for longer.
		if key := r.List[i].Text; !strings.HasSuffix(key, ":settler") && !strings.HasSuffix(key, ":end") {
			keys = append(keys, key)
		}
	}
	return keys
}

var errDied = errors.New("the loader has died")

// dieLoading has a process load a shard that dies at a step, before it is done or
// once it is, and returns at which; empty when the load was complete before.
func dieLoading(t *testing.T, r *servers.Redis, id dibs.ShardID, epoch uint16, after bool, at int) (died string) {
	t.Helper()
	loader := openOn(t, r)
	if held, err := loader.Lease(t.Context(), id, dibs.Cursor{}); err != nil || !held {
		t.Fatalf("the loader's lease: %v, %v", held, err)
	}
	// However slow the machine is, the lease outlives its loader: tests end it when they are ready.
	if _, err := loader.p.redis.Call(t.Context(), "PEXPIRE", keysIn(id).Settler, "600000"); err != nil {
		t.Fatal(err)
	}
	n, dead := 0, false
	die := func(step string) error {
		if dead || n == at {
			if !dead {
				died = step
			}
			dead = true
			return errDied
		}
		n++
		return nil
	}
	s := &stepped{Server: loader.p.redis, before: die, after: nothing}
	if after {
		s.before = func(string) error {
			if dead {
				return errDied
			}
			return nil
		}
		s.after = die
	}
	loader.p.redis = s
	c, load := overSale(id.Campaign, epoch)
	if err := loader.Open(t.Context(), c, id, load); (err != nil) != dead {
		t.Fatalf("the load that dies (%v) at step %d says %v", dead, at, err)
	}
	return died
}

// A process may die at any step of loading a shard whose campaign is over by then:
// what it leaves is taken away by another one, to the last key, once its lease has
// ended, and not before.
func TestBrokenLoadsAreRetired(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	e := openOn(t, r)
	var steps []string
	number := uint32(0)
	for _, c := range []struct {
		epoch                   uint16
		after, retired, product bool
	}{
		{1, false, false, false}, {1, true, false, false}, {2, false, false, false}, {2, true, false, false}, {2, true, true, false},
		{1, true, false, true}, {2, false, false, true}, {2, true, true, true},
	} {
		if c.product {
			number += ofProduct
		}
		for at := 0; ; at++ {
			number++
			id := dibs.ShardID{Campaign: number}
			if c.epoch > 1 {
				campaign, load := overSale(number, 1)
				if err := e.Open(t.Context(), campaign, id, load); err != nil {
					t.Fatal(err)
				}
			}
			if c.retired {
				retiredFor(t, e, id, time.Hour)
			}
			died := dieLoading(t, r, id, c.epoch, c.after, at)
			name := fmt.Sprintf("epoch %d, died at %q (%d), after it: %v, retired: %v, of a product: %v", c.epoch, died, at, c.after, c.retired, c.product)
			expires(t, e, id, c.epoch == 1 || c.retired, name)
			if c.retired {
				if _, err := e.p.redis.Call(t.Context(), "PEXPIRE", keysIn(id).Journal, "1"); err != nil {
					t.Fatal(err)
				}
			}
			clearBroken(t, e, id, name)
			if died == "" {
				break
			}
			steps = append(steps, died)
		}
	}
	for _, step := range []string{"list", "shut", "XRANGE", "load", "count", "open"} {
		if !slices.Contains(steps, step) {
			t.Errorf("no load died at %s: %q", step, steps)
		}
	}
}

// retiredFor retires a shard, whose journal stays for a time.
func retiredFor(t *testing.T, e *Engine, id dibs.ShardID, d time.Duration) {
	t.Helper()
	defer func(was time.Duration) { e.p.cfg.KeepRetired = was }(e.p.cfg.KeepRetired)
	e.p.cfg.KeepRetired = d
	if err := e.Retire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// expires looks whether Redis lets go of what a dead loader has left, also where nobody
// finds it: the meta hash first, and the journal where nothing holds it. A shard that was
// opened stays, and so does what was counted for a product: a node of an earlier version
// that opens a shard of it would not keep that from going.
func expires(t *testing.T, e *Engine, id dibs.ShardID, journal bool, name string) {
	t.Helper()
	k := keysIn(id)
	state, err := e.p.hget(t.Context(), k.Meta, "state")
	if err != nil {
		t.Fatal(err)
	}
	ttl := func(key string) int64 {
		n, err := e.p.call(t.Context(), "PTTL", key)
		if err != nil {
			t.Fatal(err)
		}
		return n.Number
	}
	for _, key := range k.OfProduct() {
		if left := ttl(key); left >= 0 {
			t.Errorf("%s: %s goes after %d ms", name, key, left)
		}
	}
	keys := []string{k.Holdings, k.Places, k.Free, k.Issued, k.Refs}
	if journal || state.Text == "open" {
		keys = append(keys, k.Journal)
	}
	for _, key := range keys {
		// The later one is asked first, since time goes on between the two.
		left, meta := ttl(key), ttl(k.Meta)
		switch {
		case left == -2: // There is no such key.
		case state.Text == "loading" && (meta <= 0 || left < meta):
			t.Errorf("%s: what is left of the load goes after %d ms, %s after %d", name, meta, key, left)
		case state.Text == "open" && (meta != -1 || left != -1):
			t.Errorf("%s: the open shard goes after %d ms, %s after %d", name, meta, key, left)
		}
	}
}

// clearBroken has another process retire what a dead loader has left.
func clearBroken(t *testing.T, e *Engine, id dibs.ShardID, name string) {
	t.Helper()
	k := keysIn(id)
	state, err := e.p.hget(t.Context(), k.Meta, "state")
	if err != nil {
		t.Fatal(err)
	}
	if held, err := e.Lease(t.Context(), id, dibs.Cursor{}); err != nil || held {
		t.Fatalf("%s: the loader's lease goes to another process: %v, %v", name, held, err)
	}
	err = e.Retire(t.Context(), id)
	if state.Text == "loading" && !errors.Is(err, dibs.ErrInvalidState) {
		t.Errorf("%s: a shard is retired whose loader has its lease: %v", name, err)
	}
	if state.None && !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("%s: a shard that is not there is retired: %v", name, err)
	}
	// The loader's lease ends.
	if _, err := e.p.redis.Call(t.Context(), "DEL", k.Settler); err != nil {
		t.Fatal(err)
	}
	if held, err := e.Lease(t.Context(), id, dibs.Cursor{}); err != nil || !held {
		t.Fatalf("%s: the lease is %v, %v", name, held, err)
	}
	if err := e.Retire(t.Context(), id); err != nil && !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("%s: retired: %v", name, err)
	}
	nothingLeft(t, e, name)
}

// nothingLeft waits until Redis has no key but leases.
func nothingLeft(t *testing.T, e *Engine, name string) {
	t.Helper()
	limit := time.Now().Add(5 * time.Second)
	for left := []string{""}; len(left) > 0; left = keysLeft(t, e) {
		if list, err := e.JournalShards(t.Context()); err != nil {
			t.Fatal(err)
		} else if time.Now().After(limit) {
			t.Fatalf("%s: left are %q, listed %v", name, left, list)
		}
	}
}

// What a dead loader has counted for a product, and nobody has found before Redis let go
// of the shard, goes with the product's next campaign.
func TestCountedRemainsGoWithTheNextCampaign(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	e, id, next := openOn(t, r), dibs.ShardID{Campaign: ofProduct}, dibs.ShardID{Campaign: ofProduct + 1}
	for at, died := 0, ""; died != "count"; at++ {
		died = dieLoading(t, r, id, uint16(at+1), true, at)
		if died == "" {
			t.Fatal("no load dies while it counts")
		}
		if _, err := e.p.redis.Call(t.Context(), "DEL", keysIn(id).Settler); err != nil {
			t.Fatal(err)
		}
	}
	k := keysIn(id)
	for _, key := range keysLeft(t, e) {
		if !slices.Contains(k.OfProduct(), key) && key != format.ShardsKey {
			if _, err := e.p.redis.Call(t.Context(), "DEL", key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Retire(t.Context(), id); !errors.Is(err, dibs.ErrNotOpen) {
		t.Errorf("a shard that Redis let go of is retired: %v", err)
	}
	c, load := overSale(next.Campaign, 1)
	if err := errors.Join(e.Open(t.Context(), c, next, load), e.Retire(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, e, "after the next campaign")
}

// A loader that was so slow that its shard was retired leaves nothing behind, and
// is told so.
func TestSlowLoadersComeTooLate(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	e, loader, id := openOn(t, r), openOn(t, r), dibs.ShardID{Campaign: 1}
	c, load := overSale(1, 1)
	loads := 0
	loader.p.redis = &stepped{Server: loader.p.redis, after: nothing, before: func(step string) error {
		if step != "load" {
			return nil
		}
		if loads++; loads == 2 {
			return e.Retire(t.Context(), id)
		}
		return nil
	}}
	if err := loader.Open(t.Context(), c, id, load); err == nil {
		t.Error("a load that was retired is opened")
	}
	if _, err := e.JournalShards(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := keysLeft(t, e); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// However slow a loader is between two steps, and whatever a process that surveys the
// shards had read before, the shard that it opens is on the list.
func TestOpenShardsAreListed(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	surveyor, number := openOn(t, r), uint32(0)
	// At one step somebody reads the list and finds nothing of the shard, at a later
	// one they take it off; a second process does both at every step.
	const steps = 6
	for first := range steps {
		for second := first; second < steps; second++ {
			number++
			id := dibs.ShardID{Campaign: number}
			loader, n, read := openOn(t, r), 0, ""
			loader.p.redis = &stepped{Server: loader.p.redis, after: nothing, before: func(string) error {
				if n == first {
					listed, err := surveyor.surveys.list.listed(t.Context())
					if err != nil {
						return err
					}
					there, err := surveyor.p.call(t.Context(), "EXISTS", format.KeysOf(id, "").Meta)
					if err != nil {
						return err
					}
					if there.Number == 0 {
						read = listed[id]
					}
				}
				if n == second && read != "" {
					if _, err := surveyor.p.redis.Run(t.Context(), conn.ForgetScript, []string{format.ShardsKey}, format.MemberOf(id), read); err != nil {
						return err
					}
				}
				n++
				_, err := surveyor.JournalShards(t.Context())
				return err
			}}
			c := openCampaign(10)
			c.Number = number
			if err := loader.Open(t.Context(), c, id, &dibs.ShardLoad{Epoch: 1, StockLeft: 10, Refs: []string{"less"}}); err != nil {
				t.Fatal(err)
			}
			list, err := surveyor.JournalShards(t.Context())
			if err != nil || !slices.Contains(list, id) {
				t.Errorf("read at step %d, forgotten at %d: the open shard is not listed: %v, %v", first, second, list, err)
			}
			if n < steps {
				t.Fatalf("a load has %d steps", n)
			}
		}
	}
}

// A process that decides on a shard puts it back on a list that was lost, and takes
// over what an older version has listed.
func TestLostListsAreMadeAgain(t *testing.T) {
	b := newBench(t, 10, nil)
	set := func(command string, args ...string) {
		t.Helper()
		if _, err := b.e.p.redis.Call(t.Context(), command, format.ShardsKey, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, lose := range []func(){func() { set("DEL") }, func() { set("HSET", format.MemberOf(b.shard), "1", "99:0", "3") }} {
		lose()
		for range 2 {
			if list, err := b.e.JournalShards(t.Context()); err != nil || !slices.Equal(list, []dibs.ShardID{b.shard}) {
				t.Fatalf("listed are %v, %v", list, err)
			}
		}
	}
	listed, err := b.e.surveys.list.listed(t.Context())
	if err != nil || len(listed) != 1 {
		t.Errorf("a shard that an older version has listed, and that is gone, stays: %v, %v", listed, err)
	}
}
