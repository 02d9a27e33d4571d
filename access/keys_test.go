package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	k, err := keyOf("tests", RoleAdmin, goodKey, time.Now())
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
