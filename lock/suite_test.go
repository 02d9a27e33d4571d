package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

var (
	theRedis *servers.Redis
	// theThree are independent of each other.
	theThree []*servers.Redis
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childOf); url != "" {
		if err := child(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "dibs-lock-")
	if err == nil {
		err = startAll(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	for _, r := range append(theThree, theRedis) {
		if r != nil {
			r.Kill()
		}
	}
	if err := errors.Join(err, servers.StopAll(), os.RemoveAll(dir), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func startAll(dir string) error {
	for i := range 4 {
		at := filepath.Join(dir, fmt.Sprint("redis", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		r, err := servers.StartRedis(at)
		if err != nil {
			return err
		}
		if i == 0 {
			theRedis = r
			continue
		}
		theThree = append(theThree, r)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openRedis(t *testing.T, life time.Duration) *lock.Redis {
	t.Helper()
	l, err := lock.OpenRedis(lock.RedisConfig{URL: theRedis.URL(), Lifetime: life})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func openSQL(t *testing.T, start func() (*servers.Server, error)) *lock.SQL {
	t.Helper()
	s, err := start()
	must(t, err)
	url, _, done, err := s.Database()
	must(t, err)
	l, err := lock.OpenSQL(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(l.Close(), done())) })
	return l
}

func openThree(t *testing.T, life time.Duration) *lock.Majority {
	t.Helper()
	var urls []string
	for _, r := range theThree {
		urls = append(urls, r.URL())
	}
	m, err := lock.OpenMajority(lock.RedisConfig{Lifetime: life}, urls...)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// lockers opens one of each kind.
var lockers = map[string]func(t *testing.T) lock.Locker{
	"redis":    func(t *testing.T) lock.Locker { return openRedis(t, 0) },
	"majority": func(t *testing.T) lock.Locker { return openThree(t, 0) },
	"mariadb":  func(t *testing.T) lock.Locker { return openSQL(t, servers.MariaDB) },
	"postgres": func(t *testing.T) lock.Locker { return openSQL(t, servers.Postgres) },
}

func each(t *testing.T, do func(t *testing.T, l lock.Locker)) {
	for name, open := range lockers {
		t.Run(name, func(t *testing.T) { do(t, open(t)) })
	}
}

// patient bounds what should come at once.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestOneAtATime lets many add to a number that only a lock guards; the fence
// of each is higher than that of the one before.
func TestOneAtATime(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		ctx := patient(t)
		const workers, turns = 8, 5
		var inside atomic.Int64
		var last uint64
		sum := 0
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range turns {
					h, err := l.Lock(ctx, t.Name(), lock.Options{})
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two have the lock")
					}
					if h.Fence() <= last {
						t.Errorf("the fence %d comes after %d", h.Fence(), last)
					}
					last = h.Fence()
					sum++
					inside.Add(-1)
					if err := h.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if sum != workers*turns {
			t.Errorf("%d turns were counted", sum)
		}
	})
}

// TestBusy tries once, and for a while, what somebody else has.
func TestBusy(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		ctx := patient(t)
		h, err := l.Lock(ctx, "busy", lock.Options{})
		must(t, err)
		for _, wait := range []time.Duration{lock.NoWait, 30 * time.Millisecond} {
			if _, err := l.Lock(ctx, "busy", lock.Options{Wait: wait}); !errors.Is(err, lock.ErrBusy) {
				t.Errorf("waiting %s ends with %v", wait, err)
			}
		}
		stopped, stop := context.WithCancel(ctx)
		stop()
		if _, err := l.Lock(stopped, "busy", lock.Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ended gives %v", err)
		}
		other, err := l.Lock(ctx, "another", lock.Options{Wait: lock.NoWait})
		must(t, err)
		must(t, other.Unlock(ctx))
		must(t, h.Unlock(ctx))
		must(t, h.Unlock(ctx))
		if !errors.Is(context.Cause(h.Context()), lock.ErrReleased) {
			t.Errorf("the context ended with %v", context.Cause(h.Context()))
		}
		again, err := l.Lock(ctx, "busy", lock.Options{Wait: 10 * time.Second})
		must(t, err)
		must(t, again.Unlock(ctx))
	})
}

// TestOwner takes a lock twice for one owner, who has it until both are back.
func TestOwner(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		ctx := patient(t)
		a, err := l.Lock(ctx, "own", lock.Options{Owner: "ann"})
		must(t, err)
		b, err := l.Lock(ctx, "own", lock.Options{Owner: "ann", Wait: lock.NoWait})
		must(t, err)
		if a.Fence() != b.Fence() {
			t.Errorf("one owner has the fences %d and %d", a.Fence(), b.Fence())
		}
		if _, err := l.Lock(ctx, "own", lock.Options{Owner: "bob", Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("another owner gets %v", err)
		}
		must(t, a.Unlock(ctx))
		must(t, a.Unlock(ctx))
		if _, err := l.Lock(ctx, "own", lock.Options{Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("given back once, it is free: %v", err)
		}
		must(t, b.Unlock(ctx))
		c, err := l.Lock(ctx, "own", lock.Options{Owner: "bob", Wait: 10 * time.Second})
		must(t, err)
		must(t, c.Unlock(ctx))
	})
}

// TestReaders share, and keep writers out.
func TestReaders(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		ctx := patient(t)
		a, err := l.Lock(ctx, "book", lock.Options{Shared: true})
		if errors.Is(err, lock.ErrUnsupported) {
			return
		}
		must(t, err)
		b, err := l.Lock(ctx, "book", lock.Options{Shared: true, Wait: 10 * time.Second})
		must(t, err)
		if _, err := l.Lock(ctx, "book", lock.Options{Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("a writer gets %v", err)
		}
		must(t, a.Unlock(ctx))
		wrote := make(chan lock.Held, 1)
		go func() {
			w, err := l.Lock(ctx, "book", lock.Options{})
			if err != nil {
				t.Error(err)
			}
			wrote <- w
		}()
		must(t, b.Unlock(ctx))
		w := <-wrote
		if w == nil {
			return
		}
		if _, err := l.Lock(ctx, "book", lock.Options{Shared: true, Wait: lock.NoWait}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("a reader gets %v", err)
		}
		must(t, w.Unlock(ctx))
	})
}

// TestNames refuses what no locker takes.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		for _, name := range []string{"", "a{b", string(make([]byte, 300))} {
			if _, err := l.Lock(t.Context(), name, lock.Options{}); err == nil {
				t.Errorf("the name %q is taken", name)
			}
		}
		if _, err := l.Lock(t.Context(), "x", lock.Options{Wait: -7}); err == nil {
			t.Error("a negative wait is taken")
		}
	})
}
