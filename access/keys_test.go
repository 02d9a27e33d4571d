package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// keyLedger has one API key, and takes its time to say so.
type keyLedger struct {
	Ledger
	good    [32]byte
	asked   atomic.Int64
	now     atomic.Int64
	most    atomic.Int64
	revoked atomic.Bool
}

func (l *keyLedger) KeyByHash(_ context.Context, hash []byte) (*APIKey, error) {
	l.asked.Add(1)
	if n := l.now.Add(1); n > l.most.Load() {
		l.most.Store(n)
	}
	revoked := l.revoked.Load()
	<-time.After(10 * time.Millisecond)
	l.now.Add(-1)
	if [32]byte(hash) == l.good && !revoked {
		return &APIKey{ID: "k-1", Role: RoleAdmin}, nil
	}
	return nil, dibs.ErrNotFound
}

const goodKey = "a-good-key-of-the-tests"

func newKeyLedger(t *testing.T) *keyLedger {
	t.Helper()
	k, err := keyOf(KeySpec{Name: "tests", Role: RoleAdmin}, goodKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &keyLedger{good: [32]byte(k.Hash)}
}

func newAccess(t *testing.T, l Ledger) *Access {
	return New(Config{Ledger: l, Logger: slog.New(slog.DiscardHandler), Now: time.Now, LedgerTimeout: 5 * time.Second, Life: t.Context()})
}

// Keys that nobody knows ask the ledger once a second each, and a few at once;
// what cannot be a key asks it nothing, and whoever has a good one is not held
// up by them.
func TestFalseKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newKeyLedger(t)
		s := newAccess(t, l)
		check := func(secret string, want error) {
			t.Helper()
			if _, err := s.CheckKey(t.Context(), secret); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", secret, err, want)
			}
		}
		check("too-short", badKey)
		check(goodKey+"\x00", badKey)
		if n := l.asked.Load(); n != 0 {
			t.Errorf("what cannot be a key was looked up %d times", n)
		}
		check(goodKey, nil)
		for range 100 {
			check("one-and-the-same-false-key", badKey)
		}
		if n := l.asked.Load(); n != 2 {
			t.Errorf("the ledger was asked %d times for two keys", n)
		}
		wait.Sleep(t.Context(), unknownKeyFor)
		check("one-and-the-same-false-key", badKey)
		if n := l.asked.Load(); n != 3 {
			t.Errorf("a false key is not looked up again after %s", unknownKeyFor)
		}
		// The good key has to be looked up again while thousands try.
		wait.Sleep(t.Context(), keyCacheFor)
		var crowd sync.WaitGroup
		var busy atomic.Int64
		for i := range 3000 {
			crowd.Go(func() {
				_, err := s.CheckKey(t.Context(), fmt.Sprint("a-key-that-somebody-made-up-", i))
				if errors.Is(err, dibs.ErrOverloaded) {
					busy.Add(1)
				} else if !errors.Is(err, badKey) {
					t.Errorf("%v", err)
				}
			})
		}
		begun := time.Now()
		check(goodKey, nil)
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("the good key took %s", took)
		}
		crowd.Wait()
		if l.most.Load() > maxKeyLookups+1 || busy.Load() < 3000-maxKeysWaiting-maxKeyLookups || busy.Load() == 0 {
			t.Errorf("%d look-ups at once, %d of 3000 were told to come again", l.most.Load(), busy.Load())
		}
		if n := len(s.keys.unknown); n > maxCachedKeys {
			t.Errorf("%d false keys are remembered", n)
		}
		// Revoked, it is worth nothing, within the time that it is believed.
		l.revoked.Store(true)
		wait.Sleep(t.Context(), keyCacheFor)
		check(goodKey, badKey)
	})
}

func (l *keyLedger) RevokeKey(context.Context, string, time.Time) error {
	l.revoked.Store(true)
	return nil
}

// A key that is looked up while it is revoked is worth nothing afterwards: what was
// read before is not remembered.
func TestRevokedWhileLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAccess(t, newKeyLedger(t))
		early := make(chan error, 1)
		go func() {
			_, err := s.CheckKey(t.Context(), goodKey)
			early <- err
		}()
		wait.Sleep(t.Context(), 5*time.Millisecond)
		if err := s.RevokeKey(t.Context(), "k-1"); err != nil {
			t.Fatal(err)
		}
		if err := <-early; err != nil {
			t.Errorf("who came before hears %v", err)
		}
		if _, err := s.CheckKey(t.Context(), goodKey); !errors.Is(err, badKey) {
			t.Errorf("after it was revoked: %v", err)
		}
	})
}

// A key that has ended is worth nothing from that moment on, also while it is remembered;
// what was seen of its use reaches the ledger.
func TestKeysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &termLedger{keys: map[[32]byte]*APIKey{}}
		s := newAccess(t, l)
		k, secret, err := s.AddKey(t.Context(), KeySpec{Name: "short", Role: RoleViewer, ExpiresAt: time.Now().Add(3 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CheckKey(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		wait.Sleep(t.Context(), 3*time.Second-time.Millisecond)
		used := dibs.Ms(time.Now())
		if _, err := s.CheckKey(t.Context(), secret); err != nil {
			t.Errorf("a moment before its end: %v", err)
		}
		wait.Sleep(t.Context(), time.Millisecond)
		if _, err := s.CheckKey(t.Context(), secret); !errors.Is(err, badKey) {
			t.Errorf("at its end: %v", err)
		}
		wait.Sleep(t.Context(), keyCacheFor)
		if _, err := s.CheckKey(t.Context(), secret); !errors.Is(err, badKey) {
			t.Errorf("after its end: %v", err)
		}
		s.touchKeys(t.Context())
		s.touchKeys(t.Context())
		if len(l.used) != 1 || !l.used[0][k.ID].Equal(used) {
			t.Errorf("noted was %v, want %v once", l.used, used)
		}
	})
}

// The use of a key that ends within two weeks is logged, once a day; that of another one, and
// that of a person's sign-in, is not.
func TestEndsAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		s := New(Config{Ledger: &termLedger{keys: map[[32]byte]*APIKey{}}, Logger: slog.New(slog.NewTextHandler(&logged, nil)), Now: time.Now, LedgerTimeout: 5 * time.Second, Life: t.Context()})
		use := func(name string, ends time.Time, person string) func() int {
			k, secret, err := s.AddKey(t.Context(), KeySpec{Name: name, Role: RoleViewer, ExpiresAt: ends})
			if err != nil {
				t.Fatal(err)
			}
			k.Person = person
			return func() int {
				before := strings.Count(logged.String(), "dibs key rotate "+k.ID)
				if _, err := s.CheckKey(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				return strings.Count(logged.String(), "dibs key rotate "+k.ID) - before
			}
		}
		now := time.Now()
		soon, later := use("soon", now.Add(13*24*time.Hour), ""), use("later", now.Add(15*24*time.Hour), "")
		for name, other := range map[string]func() int{"later": later, "never": use("never", time.Time{}, ""), "a person": use("a person", now.Add(time.Hour), "https://login.example ann")} {
			if n := other(); n != 0 {
				t.Errorf("%s is logged %d times", name, n)
			}
		}
		if n := soon(); n != 1 {
			t.Errorf("the first use is logged %d times", n)
		}
		wait.Sleep(t.Context(), 23*time.Hour)
		if n := soon(); n != 0 {
			t.Errorf("a use on the same day is logged %d times", n)
		}
		wait.Sleep(t.Context(), 2*time.Hour)
		if n := soon(); n != 1 {
			t.Errorf("a use on the next day is logged %d times", n)
		}
		if n := later(); n != 1 {
			t.Errorf("a key that ends in less than two weeks by now is logged %d times", n)
		}
	})
}

// termLedger keeps keys with their terms.
type termLedger struct {
	Ledger
	keys map[[32]byte]*APIKey
	used []map[string]time.Time
}

func (l *termLedger) InsertKey(_ context.Context, k *APIKey) error {
	l.keys[[32]byte(k.Hash)] = k
	return nil
}

func (l *termLedger) KeyByHash(_ context.Context, hash []byte) (*APIKey, error) {
	if k := l.keys[[32]byte(hash)]; k != nil {
		return k, nil
	}
	return nil, dibs.ErrNotFound
}

func (l *termLedger) TouchKeys(_ context.Context, used map[string]time.Time) error {
	l.used = append(l.used, used)
	return nil
}

// Scopes name things, also by how they begin, and nothing narrows by itself.
func TestScopes(t *testing.T) {
	s := &Scopes{Campaigns: []string{"phone", "shop-*"}, Actions: []string{"confirm"}}
	for id, want := range map[string]bool{"phone": true, "phone-2": false, "shop-": true, "shop-7": true, "shop": false, "": false, "Phone": false} {
		if s.MayCampaign(id) != want || s.MayMerchant(id) {
			t.Errorf("%q: %t for campaigns, %t for merchants", id, s.MayCampaign(id), s.MayMerchant(id))
		}
	}
	if !s.MayAct("confirm") || s.MayAct("refund") || !(*Scopes)(nil).MayAct("refund") || !(&Scopes{}).Empty() {
		t.Error("operations")
	}
	back, err := ReadScopes(s.String())
	if err != nil || back.String() != s.String() || (&Scopes{}).String() != "" {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []*Scopes{{Campaigns: []string{""}}, {Merchants: []string{"a b"}}, {Actions: []string{"a*b"}}, {Actions: []string{"ship-*"}}, {Campaigns: make([]string, maxScopes+1)}} {
		if len(bad.faults()) != 1 {
			t.Errorf("%+v was taken", bad)
		}
	}
	if fs := (&Scopes{Campaigns: []string{"*", "a-*"}}).faults(); fs != nil {
		t.Errorf("%v", fs)
	}
}
