package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lock"
)

// fenced is what a lock guards: it refuses who comes with an old fence.
type fenced struct{ highest uint64 }

func (f *fenced) write(fence uint64) bool {
	if fence < f.highest {
		return false
	}
	f.highest = fence
	return true
}

// short is a lifetime for tests that wait for its end.
const short = 600 * time.Millisecond

// TestRenewal holds a lock for longer than its lifetime, then freezes Redis in
// the middle of the work: the lifetime ends, and the holder is told.
func TestRenewal(t *testing.T) {
	ctx := patient(t)
	l, calm := openRedis(t, short), openRedis(t, long)
	h := renewed(ctx, t, l, calm)
	must(t, theRedis.Freeze())
	frozen := time.Now()
	select {
	case <-h.Context().Done():
	case <-ctx.Done():
		t.Error("the holder is not told")
	}
	if took := time.Since(frozen); took > 20*short {
		t.Errorf("the holder was told after %s", took)
	}
	must(t, theRedis.Thaw())
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("what was lost is given back: %v", err)
	}
	again, err := calm.Lock(ctx, "renewed", lock.Options{})
	must(t, err)
	must(t, again.Unlock(ctx))
}

// renewed returns a lock that was held for twice its lifetime. On a machine that
// stands still meanwhile the holder may lose it, if it is told so: then it is tried
// again.
func renewed(ctx context.Context, t *testing.T, l, other lock.Locker) lock.Held {
	t.Helper()
	for range 20 {
		h, err := l.Lock(ctx, "renewed", lock.Options{})
		must(t, err)
		next, err := other.Lock(ctx, "renewed", lock.Options{Wait: 2 * short})
		if errors.Is(err, lock.ErrBusy) {
			return h
		}
		must(t, err)
		if h.Context().Err() == nil {
			t.Fatal("somebody else has it, and the holder is not told")
		}
		must(t, next.Unlock(ctx))
	}
	t.Fatal("the lock is never renewed")
	return nil
}

// TestLostToAnother removes the lock behind the holder's back.
func TestLostToAnother(t *testing.T) {
	ctx := patient(t)
	l, calm := openRedis(t, short), openRedis(t, long)
	h, err := l.Lock(ctx, "stolen", lock.Options{})
	must(t, err)
	_, err = theRedis.Do(ctx, "DEL", "lock:{stolen}")
	must(t, err)
	other, err := calm.Lock(ctx, "stolen", lock.Options{})
	must(t, err)
	if other.Fence() <= h.Fence() {
		t.Errorf("the fence %d comes after %d", other.Fence(), h.Fence())
	}
	<-h.Context().Done()
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("it ends with %v", err)
	}
	must(t, other.Unlock(ctx))
}
