package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lock"
)

// TestNoHerd lets many wait on ZooKeeper: each watches a node of its own, so
// that one who leaves wakes one.
func TestNoHerd(t *testing.T) {
	ctx := patient(t)
	l := kindOf(t, zookeeper).open(t, long)
	h, err := l.Lock(ctx, "herd", lock.Options{})
	must(t, err)
	const waiters = 20
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			w, err := l.Lock(ctx, "herd", lock.Options{})
			if err == nil {
				err = w.Unlock(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	var paths, watches int
	for watches < waiters {
		must(t, ctx.Err())
		text, err := theZoo.Ask(ctx, "wchs")
		must(t, err)
		_, after, _ := strings.Cut(text, " connections watching ")
		_, err = fmt.Sscanf(strings.Join(strings.Fields(after), " "), "%d paths Total watches:%d", &paths, &watches)
		must(t, err)
	}
	if paths != waiters || watches != waiters {
		t.Errorf("%d waiters have %d watches on %d nodes", waiters, watches, paths)
	}
	must(t, h.Unlock(ctx))
	wg.Wait()
}

// TestZooKeeperRestarts kills ZooKeeper while a lock is held, and another is
// waited for: the session goes on, and with it both.
func TestZooKeeperRestarts(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, zookeeper)
	l, other := k.open(t, long), k.open(t, long)
	h, err := l.Lock(ctx, "restarts", lock.Options{})
	must(t, err)
	waited := make(chan lock.Held, 1)
	go func() {
		h, err := other.Lock(ctx, "restarts", lock.Options{})
		if err != nil {
			t.Error(err)
		}
		waited <- h
	}()
	k.inLine(ctx, t, "restarts", 1)
	theZoo.Kill()
	must(t, theZoo.Start())
	if err := h.Context().Err(); err != nil {
		t.Errorf("the holder has lost it: %v", context.Cause(h.Context()))
	}
	// The client needs a while until it is connected again.
	another, err := l.Lock(ctx, "another", lock.Options{})
	must(t, err)
	must(t, another.Unlock(ctx))
	must(t, h.Unlock(ctx))
	if next := <-waited; next != nil {
		if next.Fence() <= h.Fence() {
			t.Errorf("the fence %d comes after %d", next.Fence(), h.Fence())
		}
		must(t, next.Unlock(ctx))
	}
}

// TestZooKeeperFrozen stops ZooKeeper for longer than the session lives: the
// holder is told before anybody can have the lock.
func TestZooKeeperFrozen(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, zookeeper)
	l, calm := k.open(t, short), k.open(t, long)
	h, err := l.Lock(ctx, "frozen", lock.Options{})
	must(t, err)
	must(t, theZoo.Freeze())
	select {
	case <-h.Context().Done():
	case <-ctx.Done():
		t.Error("the holder is not told")
	}
	must(t, theZoo.Thaw())
	if err := h.Unlock(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("what was lost is given back: %v", err)
	}
	next, err := calm.Lock(ctx, "frozen", lock.Options{})
	must(t, err)
	must(t, next.Unlock(ctx))
	// The first one goes on with another session.
	again, err := l.Lock(ctx, "frozen", lock.Options{Wait: time.Minute})
	must(t, err)
	if err := again.Unlock(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Error(err)
	}
}

// TestZooKeeperLeft cancels those who are about to stand in line: nothing of
// them stays there.
func TestZooKeeperLeft(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, zookeeper)
	l := k.open(t, long)
	first, err := l.Lock(ctx, "left", lock.Options{})
	must(t, err)
	must(t, first.Unlock(ctx))
	for i := range 20 {
		soon, cancel := context.WithTimeout(ctx, time.Duration(i)*200*time.Microsecond)
		h, err := l.Lock(soon, "left", lock.Options{})
		if err == nil {
			err = h.Unlock(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	h, err := l.Lock(ctx, "left", lock.Options{})
	must(t, err)
	must(t, h.Unlock(ctx))
}

// TestZooKeeperUser makes nodes that only their user may touch.
func TestZooKeeperUser(t *testing.T) {
	ctx := patient(t)
	k := &kind{name: zookeeper, at: []string{"zookeeper://ann:plum@" + theZoo.Addr() + "/of/ann"}}
	l := k.open(t, long)
	h, err := l.Lock(ctx, "mine", lock.Options{})
	must(t, err)
	stranger := (&kind{name: zookeeper, at: []string{theZoo.URL() + "/of/ann"}}).open(t, long)
	if _, err := stranger.Lock(ctx, "mine", lock.Options{Wait: lock.NoWait}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("a stranger gets %v", err)
	}
	must(t, h.Unlock(ctx))
}

// TestNoZooKeeper opens what is not there.
func TestNoZooKeeper(t *testing.T) {
	for _, at := range []string{"", "redis://x", "zookeeper://", "zookeeper:///x"} {
		if _, err := lock.OpenZooKeeper(t.Context(), lock.ZooKeeperConfig{URL: at}); err == nil {
			t.Errorf("the address %q is taken", at)
		}
	}
	begun := time.Now()
	_, err := lock.OpenZooKeeper(t.Context(), lock.ZooKeeperConfig{URL: "zookeeper://ann:plum@127.0.0.1:1"})
	if err == nil || strings.Contains(err.Error(), "plum") {
		t.Errorf("where nobody is, opening gives %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("that nobody is there is known after %s", took)
	}
}

// TestZooKeeperWatchesStayFew lets many wait for a lock for a moment only: what their
// watches leave does not grow with them, and who waits to the end is woken.
func TestZooKeeperWatchesStayFew(t *testing.T) {
	ctx := patient(t)
	k := kindOf(t, zookeeper)
	l := k.open(t, long)
	h, err := l.Lock(ctx, "few", lock.Options{})
	must(t, err)
	client := l.(*lock.ZooKeeper)
	const impatient = 10
	for range impatient {
		if _, err := l.Lock(ctx, "few", lock.Options{Wait: 20 * time.Millisecond}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("who waits for a moment hears %v", err)
		}
	}
	woken := make(chan lock.Held, 1)
	go func() {
		h, err := l.Lock(ctx, "few", lock.Options{})
		if err != nil {
			t.Error(err)
		}
		woken <- h
	}()
	k.inLine(ctx, t, "few", 1)
	if n := client.Watches(); n > 1 {
		t.Errorf("%d watches are left of %d who waited for one holder", n, impatient+1)
	}
	must(t, h.Unlock(ctx))
	if next := <-woken; next != nil {
		must(t, next.Unlock(ctx))
	}
	if n := client.Watches(); n > 0 {
		t.Errorf("%d watches are left when nobody holds anything", n)
	}
}
