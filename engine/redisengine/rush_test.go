package redisengine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/redisengine"
)

// rounds is how often a campaign of faults is repeated: DIBS_REDIS_ROUNDS, or
// else SOAK divided by what one round costs, or else everyday.
func rounds(t *testing.T, everyday, cost int) int {
	t.Helper()
	for name, divide := range map[string]int{"DIBS_REDIS_ROUNDS": 1, "SOAK": cost} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				t.Fatalf("%s must be a number from 1, not %q", name, text)
			}
			return max(n/divide, everyday)
		}
	}
	return everyday
}

// dice are DIBS_REDIS_SEED's, or new ones; the seed is printed.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("DIBS_REDIS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DIBS_REDIS_SEED: %v", err)
		}
	}
	t.Logf("DIBS_REDIS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// rush is a crowd that claims from several nodes while the servers suffer.
// A client that finds the shard not open loads it from the book, as a node does.
type rush struct {
	t     *testing.T
	c     *dibs.Campaign
	shard dibs.ShardID
	book  *enginetest.Book
	// first is the epoch in which the shard was opened for the rush.
	first uint16
	nodes atomic.Pointer[[]*redisengine.Engine]
	// loading lets one load at a time, as the lease does between processes.
	loading sync.Mutex

	crowd sync.WaitGroup
	stop  chan struct{}
	users atomic.Int64

	mu sync.Mutex
	// told are the grants that were answered, by user.
	told map[string]dibs.Grant
	// tally counts what happened.
	tally tally
	// granted is the size of told.
	granted atomic.Int64
	soldOut atomic.Bool
	// over is set when the test has ended, with or without an answer to everybody.
	over atomic.Bool
}

// tally is what a campaign of faults is about.
type tally struct {
	faults, granted, lost, found, unknown, opened int64
	// longest is the longest that anybody waited for a decision.
	longest time.Duration
}

func (a *tally) add(b tally) {
	a.faults += b.faults
	a.granted += b.granted
	a.lost += b.lost
	a.found += b.found
	a.unknown += b.unknown
	a.opened += b.opened
	a.longest = max(a.longest, b.longest)
}

func (a tally) String() string {
	return fmt.Sprintf("%d faults; %d grants answered, %d of them lost, 0 twice; %d answers unknown, %d of them found granted; opened %d times; longest wait %v",
		a.faults, a.granted, a.lost, a.unknown, a.found, a.opened, a.longest.Round(time.Millisecond))
}

// newRush opens a sale of units on the first node.
func newRush(t *testing.T, number uint32, stock int64, nodes ...*redisengine.Engine) *rush {
	t.Helper()
	c := bigSale(number, stock)
	shard := dibs.ShardID{Campaign: number}
	r := &rush{
		t: t, c: c, shard: shard, book: enginetest.NewBook(c, shard, nil),
		stop: make(chan struct{}), told: map[string]dibs.Grant{},
	}
	r.nodes.Store(&nodes)
	for limit := time.Now().Add(time.Minute); ; pause(t.Context(), 20*time.Millisecond) {
		err := r.book.Open(t.Context(), nodes[0])
		if err == nil {
			break
		}
		// Replicas of a busy machine may confirm too late, as may a server.
		if !errors.Is(err, dibs.ErrUnavailable) || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	st, err := nodes[0].Stats(t.Context(), shard)
	must(t, err)
	r.first = st.Head.Epoch
	t.Cleanup(func() {
		r.over.Store(true)
		r.crowd.Wait()
	})
	return r
}

// keep looks after the shard until the stop: a node's settler finds it not open
// while the claims still wait to learn what became of them.
func (r *rush) keep(stop <-chan struct{}) {
	for {
		pause(r.t.Context(), 20*time.Millisecond)
		select {
		case <-stop:
			return
		default:
		}
		if r.over.Load() {
			return
		}
		nodes := *r.nodes.Load()
		r.reopen(nodes[len(nodes)-1])
	}
}

// claim persists for one user, as a client with a key does; false when the user was
// refused because nothing is left.
func (r *rush) claim(user string, key uint64) (dibs.Decision, bool) {
	begun, unsure := time.Now(), false
	for n := 0; ; n++ {
		nodes := *r.nodes.Load()
		node := nodes[(int(key)+n)%len(nodes)]
		d, err := node.Claim(r.t.Context(), dibs.EngineClaim{Shard: r.shard, UserID: user, Key: key, Quantity: 1})
		if err == nil && d.Outcome != dibs.Unavailable {
			if d.Replayed && !unsure {
				r.t.Errorf("%s was told for sure that nothing was granted, and holds %v", user, d.Grant.Position)
			}
			r.count(user, &d, unsure, time.Since(begun))
			return d, d.Outcome == dibs.Granted
		}
		var e *dibs.Error
		switch {
		case err == nil:
			// The servers do not give the level at this moment, so nothing was tried.
		case errors.Is(err, dibs.ErrNotOpen):
			r.reopen(node)
		case errors.As(err, &e) && (e.Reason == dibs.Unavailable || e.Reason == dibs.Overloaded):
			if e.Effect != dibs.EffectNone && !unsure {
				unsure = true
				r.mu.Lock()
				r.tally.unknown++
				r.mu.Unlock()
			}
		default:
			r.t.Errorf("the claim of %s is %v", user, err)
			return d, false
		}
		if r.over.Load() {
			return d, false
		}
		if time.Since(begun) > time.Minute {
			r.t.Errorf("%s has no decision after a minute: %v", user, err)
			return d, false
		}
		pause(r.t.Context(), 5*time.Millisecond)
	}
}

// pause lets others go on.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *rush) count(user string, d *dibs.Decision, unsure bool, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.longest = max(r.tally.longest, took)
	switch d.Outcome {
	case dibs.Granted:
		if d.Replayed && unsure {
			r.tally.found++
		}
		r.told[user] = d.Grant
		r.granted.Add(1)
	case dibs.SoldOut:
		r.soldOut.Store(true)
	default:
		r.t.Errorf("the claim of %s is %v", user, d.Outcome)
	}
}

// reopen loads the shard from the book, unless somebody else has.
func (r *rush) reopen(node *redisengine.Engine) {
	r.loading.Lock()
	defer r.loading.Unlock()
	if _, err := node.Stats(r.t.Context(), r.shard); !errors.Is(err, dibs.ErrNotOpen) {
		return
	}
	err := r.book.Open(r.t.Context(), node)
	switch {
	case err == nil:
		r.mu.Lock()
		r.tally.opened++
		r.mu.Unlock()
	case errors.Is(err, dibs.ErrUnavailable), errors.Is(err, dibs.ErrStale), errors.Is(err, dibs.ErrNotOpen):
		// The server is in trouble still, or a later load has won.
	default:
		r.t.Error(err)
	}
}

// begin sends n clients into the rush, each for one new user after the other,
// until nothing is left or end is called.
func (r *rush) begin(n int) {
	stop := r.stop
	r.crowd.Go(func() { r.keep(stop) })
	for range n {
		r.crowd.Go(func() {
			for {
				select {
				case <-r.stop:
					return
				default:
				}
				i := r.users.Add(1)
				if _, ok := r.claim(fmt.Sprint("user-", i), uint64(i)); !ok {
					return
				}
			}
		})
	}
}

// end lets the clients go once they are answered.
func (r *rush) end() {
	close(r.stop)
	r.crowd.Wait()
	r.stop = make(chan struct{})
}

// more returns when n more grants were answered than now.
func (r *rush) more(n int64) {
	r.t.Helper()
	want := r.granted.Load() + n
	limit := time.Now().Add(time.Minute)
	for r.granted.Load() < want && !r.soldOut.Load() {
		if time.Now().After(limit) || r.t.Failed() {
			r.t.Fatalf("only %d of %d grants are answered: this does not test anything", r.granted.Load(), want)
		}
		pause(r.t.Context(), time.Millisecond)
	}
	if r.granted.Load() < want {
		r.t.Fatal("sold out before the fault: this does not test anything")
	}
}

// settle moves the whole journal into the book.
func (r *rush) settle() {
	r.t.Helper()
	r.settleSome(math.MaxInt)
}

// settleSome moves at most so many entries of the journal into the book.
func (r *rush) settleSome(most int) {
	r.t.Helper()
	node := (*r.nodes.Load())[0]
	for limit := time.Now().Add(time.Minute); ; pause(r.t.Context(), 10*time.Millisecond) {
		_, err := r.book.Settle(r.t.Context(), node, most)
		if err == nil {
			return
		}
		if errors.Is(err, enginetest.ErrBroken) || time.Now().After(limit) {
			r.t.Fatal(err)
		}
	}
}

// check settles everything and compares it with what the crowd was told. It
// counts told grants that are lost, and forgets them.
func (r *rush) check() tally {
	r.t.Helper()
	r.settle()
	in := make(map[string]dibs.Cursor)
	for _, h := range r.book.Claims() {
		if first, twice := in[h.UserID]; twice {
			r.t.Errorf("%s was granted at %s and at %s", h.UserID, first, h.Cursor)
		}
		in[h.UserID] = h.Cursor
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for user, g := range r.told {
		if at, ok := in[user]; !ok || at != g.Cursor {
			r.tally.lost++
			delete(r.told, user)
			r.granted.Add(-1)
		}
	}
	r.tally.granted = int64(len(r.told)) + r.tally.lost
	return r.tally
}

// repeats expects every answered grant again, to its repeat.
func (r *rush) repeats() {
	r.t.Helper()
	r.mu.Lock()
	grants := make([]dibs.Grant, 0, len(r.told))
	for _, g := range r.told {
		grants = append(grants, g)
	}
	r.mu.Unlock()
	var repeating sync.WaitGroup
	for part := range slices.Chunk(grants, max(len(grants)/64, 1)) {
		repeating.Go(func() {
			for _, g := range part {
				key, err := strconv.ParseUint(g.UserID[len("user-"):], 10, 64)
				if err != nil {
					r.t.Error(err)
					return
				}
				d, _ := r.claimAgain(g.UserID, key)
				if !d.Replayed || d.Grant.Position != g.Position || d.Grant.At != g.At {
					r.t.Errorf("the repeat of %s is %+v, the first answer was %+v", g.UserID, d, g)
					return
				}
			}
		})
	}
	repeating.Wait()
}

// claimAgain is claim for somebody who may hold something.
func (r *rush) claimAgain(user string, key uint64) (d dibs.Decision, err error) {
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); pause(r.t.Context(), 5*time.Millisecond) {
		node := (*r.nodes.Load())[0]
		d, err = node.Claim(r.t.Context(), dibs.EngineClaim{Shard: r.shard, UserID: user, Key: key, Quantity: 1})
		if err == nil {
			return d, nil
		}
		if errors.Is(err, dibs.ErrNotOpen) {
			r.reopen(node)
		}
	}
	return d, err
}

// sellOut sells what is left, to exactly zero.
func (r *rush) sellOut() {
	r.t.Helper()
	r.begin(crashClients)
	for !r.soldOut.Load() && !r.t.Failed() {
		pause(r.t.Context(), time.Millisecond)
	}
	r.end()
	r.settle()
	if left, n := r.book.Left(), int64(len(r.book.Claims())); left != 0 || n != r.c.Stock.Total {
		r.t.Errorf("sold out with %d left and %d of %d granted", left, n, r.c.Stock.Total)
	}
	s, err := (*r.nodes.Load())[0].Stats(r.t.Context(), r.shard)
	if err != nil || s.Remaining != 0 || s.Granted != r.c.Stock.Total {
		r.t.Errorf("sold out, the engine counts %+v, %v", s, err)
	}
}
