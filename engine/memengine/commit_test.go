package memengine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/memengine"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// faulty is a real journal whose appends and readings can be made to fail: the
// faults lie around it, not in its place.
type faulty struct {
	dibs.JournalStore
	mu sync.Mutex
	// before and after fail an append before or after it is stored.
	before, after func() error
	// blind fails Reopen and Last.
	blind atomic.Bool
}

var errInjected = errors.New("injected fault")

func (f *faulty) fail(before, after func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) Append(ctx context.Context, generation int64, rows []dibs.JournalRow) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	if err := f.JournalStore.Append(ctx, generation, rows); err != nil {
		return err
	}
	if after != nil {
		return after()
	}
	return nil
}

func (f *faulty) Reopen(ctx context.Context) error {
	if f.blind.Load() {
		return errInjected
	}
	return f.JournalStore.Reopen(ctx)
}

// always is a fault that is there until it is lifted.
func always() error { return errInjected }

type failureRig struct {
	*testing.T
	store  *faulty
	engine *memengine.Engine
	shard  dibs.ShardID
	c      *dibs.Campaign
}

func newFailureRig(t *testing.T, stock int64) *failureRig {
	t.Helper()
	table, err := sqlledger.OpenSQLiteJournal(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &failureRig{T: t, store: &faulty{JournalStore: table}, shard: dibs.ShardID{Campaign: 1}}
	r.engine, err = memengine.Open(t.Context(), memengine.Config{Store: r.store, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.c = &dibs.Campaign{
		Number: 1, ID: "c", Kind: dibs.Sale, State: dibs.Published, LimitPerUser: 2, Shards: 1, Version: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.Stock{Kind: dibs.Items, Total: stock},
	}
	load := &dibs.ShardLoad{Epoch: 1, StockLeft: stock}
	for i := range stock {
		load.Items = append(load.Items, fmt.Sprint("seat ", i))
		load.FreeItems = append(load.FreeItems, uint32(i))
	}
	if err := r.engine.Open(t.Context(), r.c, r.shard, load); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *failureRig) claim(user string, key uint64) (dibs.Decision, error) {
	return r.engine.Claim(r.Context(), dibs.EngineClaim{Shard: r.shard, UserID: user, Quantity: 1, Key: key})
}

func (r *failureRig) stats() dibs.ShardStats {
	r.Helper()
	st, err := r.engine.Stats(r.Context(), r.shard)
	if err != nil {
		r.Fatal(err)
	}
	// Two counts of the same differ by when they were made.
	st.Now = 0
	return st
}

// effect checks that an error says what it may have done.
func (r *failureRig) effect(err error, want dibs.Effect) {
	r.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != dibs.Unavailable || e.Effect != want {
		r.Fatalf("error %v, want unavailable with effect %s", err, want)
	}
}

// journal returns all entries, checked to be without a gap.
func (r *failureRig) journal() []dibs.Entry {
	r.Helper()
	entries, err := r.engine.ReadJournal(r.Context(), r.shard, dibs.Cursor{}, 1<<20)
	if err != nil {
		r.Fatal(err)
	}
	at := dibs.Cursor{}
	for i := range entries {
		if !dibs.Continues(at, &entries[i]) {
			r.Fatalf("entry %s follows %s", entries[i].Cursor, at)
		}
		at = entries[i].Cursor
	}
	return entries
}

// A commit that stored nothing is undone, whatever it held: the same steps
// then succeed as if nothing had happened.
func TestAFailedCommitIsUndone(t *testing.T) {
	r := newFailureRig(t, 4)
	first, err := r.claim("u1", 1)
	if err != nil {
		t.Fatal(err)
	}
	before := r.stats()
	steps := map[string]func() error{
		"claim": func() error { _, err := r.claim("u2", 2); return err },
		"release": func() error {
			return r.engine.Release(t.Context(), dibs.Release{Claim: first.Grant.Position, Epoch: 1})
		},
		"withdraw": func() error {
			return r.engine.Adjust(t.Context(), dibs.Adjustment{Shard: r.shard, Ref: "w", Delta: -1})
		},
		"restock": func() error {
			return r.engine.Adjust(t.Context(), dibs.Adjustment{Shard: r.shard, Epoch: 1, Ref: "r", Delta: 1, FirstItem: 4, Items: []string{"new"}})
		},
	}
	for name, step := range steps {
		r.store.fail(always, nil)
		r.effect(step(), dibs.EffectNone)
		r.store.fail(nil, nil)
		if after := r.stats(); after != before {
			t.Fatalf("after an undone %s: %+v, want %+v", name, after, before)
		}
	}
	for name, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("%s again: %v", name, err)
		}
	}
	if st := r.stats(); st.Remaining != 3 || st.Granted != 1 {
		t.Fatalf("%+v", st)
	}
	if n := len(r.journal()); n != 6 {
		t.Fatalf("%d entries, want 6", n)
	}
}

// A commit that was stored although it failed is kept: its callers get their
// yes. A journal that says itself that it does not know is not taken for sure.
func TestAFailedCommitThatWasStoredIsKept(t *testing.T) {
	for _, fault := range []error{errInjected, dibs.Unavail(dibs.EffectUnknown, errInjected), &dibs.Error{Reason: dibs.Unavailable}} {
		r := newFailureRig(t, 3)
		r.store.fail(nil, func() error { r.store.fail(nil, nil); return fault })
		d, err := r.claim("u1", 1)
		if err != nil || d.Outcome != dibs.Granted {
			t.Fatalf("after %v: %+v, %v", fault, d, err)
		}
		again, err := r.claim("u1", 1)
		if err != nil || !again.Replayed || again.Grant.Position != d.Grant.Position {
			t.Fatalf("after %v: %+v, %v", fault, again, err)
		}
		if n := len(r.journal()); n != 2 {
			t.Errorf("after %v the journal has %d entries, want 2", fault, n)
		}
	}
}

// A refusal by the limit waits for the grants that fill it: when they are taken
// back, it does not stand.
func TestARefusalByTheLimitWaitsForItsGrants(t *testing.T) {
	r := newFailureRig(t, 4)
	r.store.fail(func() error {
		// The commit is under way: what is decided now depends on it.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		for key := range uint64(2) {
			req := dibs.EngineClaim{Shard: r.shard, UserID: "u1", Quantity: 2, Key: 5 * key}
			if d, err := r.engine.Claim(ctx, req); err == nil {
				t.Errorf("while the grant is being stored, another claim is %v", d.Outcome)
			}
		}
		return dibs.Unavail(dibs.EffectNone, errInjected)
	}, nil)
	_, err := r.claim("u1", 1)
	r.effect(err, dibs.EffectNone)
	r.store.fail(nil, nil)
	if st := r.stats(); st.Granted != 0 || st.Remaining != 4 {
		t.Fatalf("%+v", st)
	}
}

// While nobody can tell what a failed commit did, callers are told so, nothing
// else is decided, and the truth is found as soon as the journal can be read.
func TestAnUnknownEffectIsFoundOut(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			r := newFailureRig(t, 3)
			r.store.blind.Store(true)
			if stored {
				r.store.fail(nil, always)
			} else {
				r.store.fail(always, nil)
			}
			_, err := r.claim("u1", 1)
			r.effect(err, dibs.EffectUnknown)
			_, err = r.claim("u2", 1)
			r.effect(err, dibs.EffectNone)
			r.store.fail(nil, nil)
			r.store.blind.Store(false)
			var d dibs.Decision
			for d, err = r.claim("u1", 1); err != nil; d, err = r.claim("u1", 1) {
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
			}
			if d.Outcome != dibs.Granted || d.Replayed != stored {
				t.Fatalf("%+v, want it replayed: %v", d, stored)
			}
			r.journal()
		})
	}
}

// Faults at random under load: every yes is in the journal once, every refusal
// with effect none is not, and seats go to one claim each.
func TestRandomFaultsKeepEveryYes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	flip := func() error {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(5) == 0 {
			return errInjected
		}
		return nil
	}
	const callers, each = 32, 40
	r := newFailureRig(t, callers*each)
	r.store.fail(flip, flip)
	var yes, none sync.Map
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for i := range each {
				user := fmt.Sprintf("u%d-%d", w, i)
				d, err := r.claim(user, 1)
				var e *dibs.Error
				switch {
				case err == nil && d.Outcome == dibs.Granted:
					yes.Store(user, d.Grant.Position)
				case errors.As(err, &e) && e.Effect == dibs.EffectNone:
					none.Store(user, true)
				default:
					t.Errorf("claim of %s: %+v, %v", user, d, err)
				}
			}
		})
	}
	wg.Wait()
	r.store.fail(nil, nil)
	seats, granted := map[uint32]string{}, 0
	for _, e := range r.journal() {
		if e.Kind != dibs.EntryGrant {
			continue
		}
		granted++
		at, ok := yes.LoadAndDelete(e.UserID)
		if !ok || at.(dibs.Position).Cursor != e.Cursor {
			t.Errorf("%s has an entry at %s, was answered %v", e.UserID, e.Cursor, at)
		}
		if _, refused := none.Load(e.UserID); refused {
			t.Errorf("%s was told that nothing happened", e.UserID)
		}
		if other, taken := seats[e.Items[0]]; taken {
			t.Errorf("seat %d went to %s and %s", e.Items[0], other, e.UserID)
		}
		seats[e.Items[0]] = e.UserID
	}
	yes.Range(func(user, at any) bool {
		t.Errorf("%v was granted at %v and is not in the journal", user, at)
		return true
	})
	refused := 0
	none.Range(func(any, any) bool { refused++; return true })
	if granted == 0 || refused == 0 {
		t.Fatalf("%d granted, %d refused: the faults did not bite", granted, refused)
	}
	if st := r.stats(); st.Granted != int64(granted) || st.Remaining != int64(callers*each-granted) {
		t.Fatalf("%+v with %d granted", st, granted)
	}
}

// An engine that has lost the lease decides nothing more.
func TestAFencedEngineStops(t *testing.T) {
	r := newFailureRig(t, 3)
	if _, err := r.claim("u1", 1); err != nil {
		t.Fatal(err)
	}
	r.store.fail(func() error { return dibs.ErrFenced }, nil)
	_, err := r.claim("u2", 1)
	r.effect(err, dibs.EffectNone)
	r.store.fail(nil, nil)
	// Nobody looks any more whether it was granted before.
	_, err = r.claim("u3", 1)
	r.effect(err, dibs.EffectUnknown)
	_, err = r.claim("u3", 0)
	r.effect(err, dibs.EffectNone)
	if err := r.engine.Ping(t.Context()); !errors.Is(err, dibs.ErrFenced) {
		t.Fatalf("ping: %v", err)
	}
}

// TestFaultPasses: an engine whose commit failed is ready again when its journal is,
// although nobody claims meanwhile.
func TestFaultPasses(t *testing.T) {
	r := newFailureRig(t, 10)
	r.store.fail(func() error { return dibs.Unavail(dibs.EffectNone, errInjected) }, nil)
	r.store.blind.Store(true)
	_, err := r.claim("a", 0)
	r.effect(err, dibs.EffectNone)
	for range 3 {
		<-time.After(memengine.ProbeEvery / 2)
		if r.engine.Ping(t.Context()) == nil {
			t.Fatal("the engine is ready while its journal is not")
		}
	}
	r.store.fail(nil, nil)
	r.store.blind.Store(false)
	for begun := time.Now(); r.engine.Ping(t.Context()) != nil; <-time.After(10 * time.Millisecond) {
		if time.Since(begun) > 10*memengine.ProbeEvery {
			t.Fatal("the engine is not ready again")
		}
	}
}
