package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// revokedRows is a ledger of revocations that two nodes share.
type revokedRows struct {
	mu     sync.Mutex
	rows   []Revocation
	marks  int
	broken error
}

func (l *revokedRows) InsertRevocation(_ context.Context, r *Revocation, most int) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	if len(l.rows) >= most {
		return false, nil
	}
	l.rows = append([]Revocation{*r}, l.rows...)
	return true, nil
}

func (l *revokedRows) Revocations(context.Context) ([]Revocation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rows), l.broken
}

func (l *revokedRows) RevocationMark(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.marks), l.broken
}

func (l *revokedRows) DeleteRevocation(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	l.rows = slices.DeleteFunc(l.rows, func(r Revocation) bool { return r.ID == id })
	return nil
}

func (l *revokedRows) DropRevocations(context.Context, time.Time) error { return nil }

// TestRevocations: what one node revokes is refused there at once, and by another node within a
// second, also while the ledger does not answer; and it counts again when that is taken back.
func TestRevocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := &revokedRows{}
		one, other := NewRevocations(l, slog.New(slog.DiscardHandler), time.Now), NewRevocations(l, slog.New(slog.DiscardHandler), time.Now)
		var loops sync.WaitGroup
		loops.Go(func() { other.Loop(ctx) })
		defer loops.Wait()
		defer stop()
		issued := time.Now()
		wait.Sleep(t.Context(), time.Minute)
		user, err := one.Revoke(ctx, RevocationSpec{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Revoke(ctx, RevocationSpec{JTI: "token-7", ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		judge := func(s *Revocations, when string, want ...bool) {
			t.Helper()
			got := []bool{
				s.Has("ann", "", issued), s.Has("ann", "", time.Time{}), s.Has("ann", "x", time.Now().Add(time.Second)), s.Has("bob", "", issued),
				s.Has("bob", "token-7", issued), s.Has("bob", "token-8", issued),
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		judge(one, "at once", true, true, false, false, true, false)
		wait.Sleep(t.Context(), time.Second)
		judge(other, "at the other node", true, true, false, false, true, false)
		l.mu.Lock()
		l.broken = errors.New("away")
		l.mu.Unlock()
		wait.Sleep(t.Context(), time.Minute)
		judge(other, "without the ledger", true, true, false, false, true, false)
		l.mu.Lock()
		l.broken = nil
		l.mu.Unlock()
		if err := one.Allow(ctx, user.ID); err != nil {
			t.Fatal(err)
		}
		judge(one, "taken back", false, false, false, false, true, false)
		wait.Sleep(t.Context(), time.Second)
		judge(other, "taken back, at the other node", false, false, false, false, true, false)
	})
}

// TestRevocationsCostNothing: a claim asks without a lock or memory.
func TestRevocationsCostNothing(t *testing.T) {
	s := NewRevocations(&revokedRows{}, slog.New(slog.DiscardHandler), time.Now)
	for _, spec := range []RevocationSpec{{User: "ann"}, {JTI: "token-7"}} {
		if _, err := s.Revoke(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { s.Has("bob", "token-8", now) }); n != 0 {
		t.Errorf("a look takes %v allocations", n)
	}
}

// TestRevocationSpec refuses what would revoke nothing, or nobody knows what.
func TestRevocationSpec(t *testing.T) {
	now := time.Now()
	for _, spec := range []RevocationSpec{
		{}, {JTI: "a", User: "b"}, {User: "a b"}, {JTI: "a\n"}, {JTI: "a", IssuedBefore: now}, {User: "a", IssuedBefore: now.Add(time.Hour)},
		{User: "a", ExpiresAt: now}, {User: "a", ExpiresAt: now.Add(401 * 24 * time.Hour)}, {User: "a", Why: string(make([]byte, maxRevokeWhy+1))},
	} {
		if _, err := spec.revocation(now); !errors.Is(err, &dibs.Error{Reason: dibs.InvalidRequest}) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	full := &revokedRows{rows: make([]Revocation, MaxRevocations)}
	if _, err := NewRevocations(full, slog.New(slog.DiscardHandler), time.Now).Revoke(t.Context(), RevocationSpec{User: "a"}); !errors.Is(err, tooManyRevoked) {
		t.Errorf("beyond the bound: %v", err)
	}
}
