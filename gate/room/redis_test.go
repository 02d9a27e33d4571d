package room_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/gate"
)

// node is one of several on a Redis.
type node struct {
	*room.Rooms
	engine *redisengine.Engine
	cable  *cable
}

// cable connects a node to Redis until it is cut, for good.
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

// newNodes starts a Redis and nodes on it, with a ledger that they share.
func newNodes(t *testing.T, n int, spec dibs.RoomSpec, starts time.Time) (*servers.Redis, []node, *dibs.Campaign) {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	must(t, err)
	t.Cleanup(redis.Kill)
	l := newLedger(t)
	c := campaign(t, l, "phone", spec)
	c.StartsAt, c.EndsAt = starts, starts.Add(hour)
	nodes := make([]node, n)
	for i := range nodes {
		wire := &cable{}
		engine, err := redisengine.Open(t.Context(), redisengine.Config{URL: redis.URL(), Dial: wire.dial})
		must(t, err)
		t.Cleanup(func() {
			if err := engine.Close(context.Background()); err != nil {
				t.Logf("a node closes with: %v", err)
			}
		})
		nodes[i] = node{newRooms(t, room.Config{Ledger: l, Redis: engine.Abilities().Store}), engine, wire}
	}
	return redis, nodes, c
}

// Three nodes give places at the same time, and one of them dies in the middle of
// it: there is one order, nobody has another's place, and a user who was not told
// theirs has it all the same.
func TestNodesShareOneOrder(t *testing.T) {
	_, nodes, c := newNodes(t, 3, fifo(1), time.Now().Add(hour))
	const people = 300
	places := make([]int64, people)
	crowd := func(from, to int) {
		var wg sync.WaitGroup
		for i := from; i < to; i++ {
			wg.Go(func() {
				v, err := nodes[i%3].Join(t.Context(), c, user(i))
				if err != nil && i%3 == 0 && from > 0 {
					// The node died; the user asks another one.
					v, err = nodes[1].Join(t.Context(), c, user(i))
				}
				if err != nil {
					t.Error(err)
				}
				places[i] = v.Place
				if i == people-people/4 {
					nodes[0].cable.sever()
				}
			})
		}
		wg.Wait()
	}
	crowd(0, people/2)
	// A user who comes later is behind all who came before, on every node.
	for i := range people / 2 {
		if places[i] < 1 || places[i] > people/2 {
			t.Fatalf("%s has place %d of %d", user(i), places[i], people/2)
		}
	}
	crowd(people/2, people)
	sorted := slices.Sorted(slices.Values(places))
	for i, p := range sorted {
		if p != int64(i)+1 {
			t.Fatalf("place %d is given twice, or not at all", i+1)
		}
	}
	for i := range people {
		for _, n := range nodes[1:] {
			if v := join(t, n.Rooms, c, user(i)); v.Place != places[i] {
				t.Fatalf("%s has place %d on one node, %d on another", user(i), places[i], v.Place)
			}
		}
	}
}

// The shuffle is the same for all nodes, and so is how far the room is; a restart
// of Redis and of all nodes changes nothing.
func TestNodesShareOneShuffle(t *testing.T) {
	redis, nodes, c := newNodes(t, 2, dibs.RoomSpec{Mode: dibs.Shuffle, Rate: 1, Per: dibs.Duration(hour), Burst: 5}, time.Now().Add(hour))
	const early = 40
	for i := range early {
		join(t, nodes[i%2].Rooms, c, user(i))
	}
	if v := place(t, nodes[0].Rooms, c, user(1)); v.State != gate.PlaceArrived {
		t.Fatalf("before the start: %+v", v)
	}
	c = changed(c, func(c *dibs.Campaign) { c.StartsAt = time.Now().Add(-time.Second) })
	if v := place(t, nodes[1].Rooms, c, user(0)); v.State == gate.PlaceArrived {
		t.Fatalf("after the start: %+v", v)
	}
	redis.Kill()
	must(t, redis.Start())
	seen, admitted := map[int64]bool{}, 0
	for i := range early {
		a := placeSoon(t, nodes[0].Rooms, c, user(i))
		b := place(t, nodes[1].Rooms, c, user(i))
		if a.Place != b.Place || seen[a.Place] || a.Place < 1 || a.Place > early || a.AdmittedUpTo != 5 {
			t.Fatalf("%s: %+v and %+v", user(i), a, b)
		}
		seen[a.Place] = true
		if a.State == gate.PlaceAdmitted {
			admitted++
			if _, passed := claims(nodes[1].Rooms, c, user(i), a.Admission); !passed {
				t.Errorf("the other node refuses the admission of %s", user(i))
			}
		}
	}
	if admitted != 5 {
		t.Errorf("%d are admitted, want 5", admitted)
	}
	if v := join(t, nodes[1].Rooms, c, "late"); v.Place != early+1 {
		t.Errorf("who comes after the start has place %d", v.Place)
	}
}

// A start that no node could look at is not made up for by Redis' script, either.
func TestAnOutageOfAllNodes(t *testing.T) {
	_, nodes, c := newNodes(t, 1, dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(10 * time.Second), Burst: 3}, time.Now().Add(hour))
	for i := range 30 {
		join(t, nodes[0].Rooms, c, user(i))
	}
	// Two minutes give twelve; one burst at the start and one more are admitted.
	c = changed(c, func(c *dibs.Campaign) { c.StartsAt = time.Now().Add(-2 * time.Minute) })
	if v := place(t, nodes[0].Rooms, c, user(29)); v.AdmittedUpTo != 6 {
		t.Errorf("after the outage: up to %d, want 6", v.AdmittedUpTo)
	}
}

// Those who leave let the next in, by Redis' script as by this process.
func TestLeavingOnRedis(t *testing.T) {
	_, nodes, c := newNodes(t, 2, dibs.RoomSpec{Mode: dibs.FIFO, Rate: 1, Per: dibs.Duration(hour), Burst: 2, Max: 9}, time.Now().Add(hour))
	for i := range 9 {
		join(t, nodes[0].Rooms, c, user(i))
	}
	_, err := nodes[1].Join(t.Context(), c, user(9))
	fails(t, err, dibs.Overloaded)
	for _, u := range []string{user(1), user(2), user(2), "nobody"} {
		must(t, nodes[1].Leave(t.Context(), c, u))
	}
	// Two have left: another two may come.
	join(t, nodes[0].Rooms, c, user(9))
	_, err = nodes[0].Place(t.Context(), c, user(1))
	fails(t, err, dibs.NotFound)
	c = changed(c, func(c *dibs.Campaign) { c.StartsAt = time.Now().Add(-time.Second) })
	if v := place(t, nodes[0].Rooms, c, user(3)); v.State != gate.PlaceAdmitted || v.AdmittedUpTo != 4 || v.Admission == "" {
		t.Errorf("%+v", v)
	}
	if v := join(t, nodes[1].Rooms, c, user(1)); v.Place != 11 {
		t.Errorf("who comes back has place %d, want 11", v.Place)
	}
	_, err = nodes[0].Join(t.Context(), c, "one too many")
	fails(t, err, dibs.Overloaded)
	// A user who leaves for the second time does not come again.
	must(t, nodes[0].Leave(t.Context(), c, user(1)))
	_, err = nodes[1].Join(t.Context(), c, user(1))
	fails(t, err, dibs.LimitReached)
	if v := join(t, nodes[1].Rooms, c, "another"); v.Place != 12 {
		t.Errorf("the next has place %d, want 12", v.Place)
	}
	paused := changed(c, func(c *dibs.Campaign) { c.State, c.Gate.Room.Rate = dibs.PausedState, 1_000_000 })
	if v := place(t, nodes[0].Rooms, paused, user(9)); v.AdmittedUpTo != 4 {
		t.Errorf("while it is paused: %+v", v)
	}
}

// waitFor waits for a condition, for as long as a loaded machine may need.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// placeSoon is place while Redis comes back.
func placeSoon(t *testing.T, r *room.Rooms, c *dibs.Campaign, user string) (v gate.PlaceView) {
	t.Helper()
	waitFor(t, func() bool {
		var err error
		v, err = r.Place(context.Background(), c, user)
		return err == nil
	})
	return v
}

func BenchmarkJoinOnRedis(b *testing.B) {
	redis, err := servers.StartRedis(b.TempDir(), servers.RedisAlways...)
	must(b, err)
	b.Cleanup(redis.Kill)
	engine, err := redisengine.Open(context.Background(), redisengine.Config{URL: redis.URL()})
	must(b, err)
	b.Cleanup(func() { must(b, engine.Close(context.Background())) })
	l := newLedger(b)
	r := newRooms(b, room.Config{Ledger: l, Redis: engine.Abilities().Store})
	c := campaign(b, l, "phone", fifo(1))
	c.StartsAt, c.EndsAt = time.Now().Add(hour), time.Now().Add(2*hour)
	b.SetParallelism(512)
	var mu sync.Mutex
	n := 0
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mu.Lock()
			n++
			u := fmt.Sprint("user-", n)
			mu.Unlock()
			if _, err := r.Join(context.Background(), c, u); err != nil {
				b.Error(err)
			}
		}
	})
}
