package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

// kill kills one of the three servers, which is there again for the next test
// whatever becomes of this one.
func kill(t *testing.T, n int) {
	t.Helper()
	theThree[n].Kill()
	t.Cleanup(func() {
		if theThree[n].Process() == nil {
			must(t, theThree[n].Start())
		}
	})
}

// voted waits until a server has given its vote for a lock. A lock that lacks a vote may
// be lost with the next server, when another caller asks for it meanwhile.
func voted(ctx context.Context, t *testing.T, r *servers.Redis, name string) {
	t.Helper()
	for !holds(ctx, t, r, name) {
		// It is asked again.
	}
}

// holds reports whether a server holds a lock.
func holds(ctx context.Context, t *testing.T, r *servers.Redis, name string) bool {
	t.Helper()
	reply, err := r.Do(ctx, "HEXISTS", "lock:{"+name+"}", "owner")
	must(t, err)
	has, err := reply.AsBool()
	must(t, err)
	return has
}

// openToAll opens a locker that is connected to all three servers. One that has just been opened may be so to most of
// them, and a server that is not reached when a lock is taken gives no vote for it.
func openToAll(ctx context.Context, t *testing.T, life time.Duration) lock.Locker {
	t.Helper()
	m := kindOf(t, majority).open(t, life)
	for all := false; !all; {
		h, err := m.Lock(ctx, "all", lock.Options{})
		must(t, err)
		all = true
		for _, r := range theThree {
			all = all && holds(ctx, t, r, "all")
		}
		must(t, h.Unlock(ctx))
	}
	return m
}

// TestMinorityLost kills one of three servers: locks are held and taken on.
// With the second the holder is told, and nobody gets another.
func TestMinorityLost(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, majority)
	m, brief := openToAll(ctx, t, long), k.open(t, 4*short)
	h, err := m.Lock(ctx, "few", lock.Options{})
	must(t, err)
	for _, r := range theThree {
		voted(ctx, t, r, "few")
	}
	kill(t, 0)
	if _, err := answered(ctx, m, "few", lock.Options{Wait: short / 2}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("with one server lost the lock is %v", err)
	}
	if h.Context().Err() != nil {
		t.Errorf("with one server lost the holder has lost it: %v", context.Cause(h.Context()))
	}
	must(t, h.Unlock(ctx))
	second, err := brief.Lock(ctx, "few", lock.Options{})
	must(t, err)
	if second.Fence() <= h.Fence() {
		t.Errorf("the fence %d comes after %d", second.Fence(), h.Fence())
	}
	late := k.open(t, long)
	other, err := late.Lock(ctx, "others", lock.Options{})
	must(t, err)
	must(t, other.Unlock(ctx))
	kill(t, 1)
	<-second.Context().Done()
	if err := second.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("with two servers lost it ends with %v", err)
	}
	if _, err := m.Lock(ctx, "few", lock.Options{Wait: lock.NoWait}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("with two servers lost a lock gives %v", err)
	}
	// Also where the third says that somebody has it.
	alone, err := lock.OpenRedis(lock.RedisConfig{URL: theThree[2].URL()})
	must(t, err)
	defer func() { must(t, alone.Close()) }()
	held, err := alone.Lock(ctx, "alone", lock.Options{})
	must(t, err)
	for range 10 {
		if _, err := m.Lock(ctx, "alone", lock.Options{Wait: lock.NoWait}); err == nil || errors.Is(err, lock.ErrBusy) {
			t.Fatalf("with two servers lost and a no of the third a lock gives %v", err)
		}
	}
	must(t, held.Unlock(ctx))
	if _, err := openKind(k.name, k.at, long); err == nil {
		t.Error("with two servers lost a locker is opened")
	}
	must(t, theThree[0].Start())
	must(t, theThree[1].Start())
	for _, l := range []lock.Locker{m, late} {
		third, err := l.Lock(ctx, "few", lock.Options{})
		must(t, err)
		must(t, third.Unlock(ctx))
	}
}

// TestHalfLost kills two of four servers: the others are no majority, and nobody
// else has the lock.
func TestHalfLost(t *testing.T) {
	ctx := patient(t)
	k := &kind{name: majority, at: []string{theRedis.URL()}}
	for _, r := range theThree {
		k.at = append(k.at, r.URL())
	}
	m := k.open(t, long)
	h, err := m.Lock(ctx, "half", lock.Options{})
	must(t, err)
	must(t, h.Unlock(ctx))
	kill(t, 0)
	kill(t, 1)
	if _, err := m.Lock(ctx, "half", lock.Options{Wait: lock.NoWait}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("with two of four servers lost a lock gives %v", err)
	}
}

// TestMinorityHangs pauses one of three servers, which is worse than a lost one:
// it never says no. No caller waits for it, a holder keeps its lock, and when the
// server goes on it gives back what was asked of it: at once, or when the lifetime is
// over where the connection broke meanwhile.
func TestMinorityHangs(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, majority)
	calm := k.open(t, time.Minute)
	must(t, theThree[2].Freeze())
	defer func() { must(t, theThree[2].Thaw()) }()
	begun := time.Now()
	h, err := calm.Lock(ctx, "hangs", lock.Options{})
	must(t, err)
	if _, err := calm.Lock(ctx, "hangs", lock.Options{Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("with one server that hangs the lock is %v", err)
	}
	must(t, h.Unlock(ctx))
	// Waiting for it takes half a minute here.
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("with one server that hangs it took %s", took)
	}
	kept(ctx, t, k.open(t, 2*short), calm)
	must(t, theThree[2].Thaw())
	// All three are free again.
	kill(t, 0)
	again, err := calm.Lock(ctx, "hangs", lock.Options{})
	must(t, err)
	must(t, again.Unlock(ctx))
	must(t, theThree[0].Start())
}

// answered takes a lock, again where servers did not answer in time: on a machine that
// stands still for a moment most of them may not.
func answered(ctx context.Context, l lock.Locker, name string, o lock.Options) (lock.Held, error) {
	for range 20 {
		h, err := l.Lock(ctx, name, o)
		if !errors.Is(err, lock.ErrNoMajority) {
			return h, err
		}
	}
	return l.Lock(ctx, name, o)
}

// kept holds a lock for longer than its lifetime. On a machine that stands still
// meanwhile the holder may lose it, if it is told so: then it is tried again.
func kept(ctx context.Context, t *testing.T, l, other lock.Locker) {
	t.Helper()
	for range 20 {
		h, err := answered(ctx, l, "kept", lock.Options{})
		must(t, err)
		next, err := answered(ctx, other, "kept", lock.Options{Wait: 3 * short})
		if errors.Is(err, lock.ErrBusy) {
			if h.Unlock(ctx) == nil {
				return
			}
			continue
		}
		must(t, err)
		if h.Context().Err() == nil {
			t.Fatal("somebody else has it, and the holder is not told")
		}
		must(t, next.Unlock(ctx))
	}
	t.Error("the lock is never kept")
}

// TestLateVote: a server that answers after most have said yes gives its vote too,
// so that the lock outlives the loss of another.
func TestLateVote(t *testing.T) {
	ctx := patient(t)
	m, late := openToAll(ctx, t, long), theThree[2]
	// The locker has to connect again, which it cannot yet.
	_, err := late.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	must(t, err)
	must(t, late.Freeze())
	h, err := m.Lock(ctx, "late", lock.Options{})
	must(t, errors.Join(err, late.Thaw()))
	voted(ctx, t, late, "late")
	kill(t, 0)
	must(t, h.Unlock(ctx))
}
