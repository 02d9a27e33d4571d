package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

var (
	theRedis *servers.Redis
	// theThree are independent of each other.
	theThree []*servers.Redis
	theZoo   *servers.ZooKeeper
)

func TestMain(m *testing.M) {
	if os.Getenv(childKind) != "" {
		if err := child(); err != nil {
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
	if theZoo != nil {
		theZoo.Kill()
	}
	if err := errors.Join(err, servers.StopAll(), os.RemoveAll(dir), leaks.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func startAll(dir string) error {
	var g errgroup.Group
	all := make([]*servers.Redis, 4)
	for i := range 5 {
		at := filepath.Join(dir, fmt.Sprint("server", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		g.Go(func() (err error) {
			if i == 4 {
				theZoo, err = servers.StartZooKeeper(at)
				return err
			}
			all[i], err = servers.StartRedis(at)
			return err
		})
	}
	err := g.Wait()
	theRedis, theThree = all[0], slices.DeleteFunc(all[1:], func(r *servers.Redis) bool { return r == nil })
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The kinds of lockers.
const (
	redis, majority, mariadb, postgres, zookeeper = "redis", "majority", "mariadb", "postgres", "zookeeper"
)

// kind is a kind of locker, and where its servers are.
type kind struct {
	name string
	at   []string
	// server is that of mariadb and postgres, database the one at hand.
	server   *servers.Server
	database string
}

// kindOf makes sure of the servers of a kind.
func kindOf(t *testing.T, name string) *kind {
	t.Helper()
	k := &kind{name: name}
	start := servers.MariaDB
	switch name {
	case redis:
		k.at = []string{theRedis.URL()}
		return k
	case majority:
		for _, r := range theThree {
			k.at = append(k.at, r.URL())
		}
		return k
	case zookeeper:
		k.at = []string{theZoo.URL()}
		return k
	case postgres:
		start = servers.Postgres
	}
	s, url, database := servers.Database(t, start)
	k.at, k.server, k.database = []string{url}, s, database
	return k
}

// openKind opens a locker of a kind.
func openKind(name string, at []string, life time.Duration) (lock.Locker, error) {
	ctx := context.Background()
	switch name {
	case redis:
		return lock.OpenRedis(lock.RedisConfig{URL: at[0], Lifetime: life})
	case majority:
		return lock.OpenMajority(lock.RedisConfig{Lifetime: life}, at...)
	case zookeeper:
		return lock.OpenZooKeeper(ctx, lock.ZooKeeperConfig{URL: at[0], Lifetime: life})
	}
	return lock.OpenSQL(ctx, at[0])
}

// open opens a locker until the test ends.
func (k *kind) open(t *testing.T, life time.Duration) lock.Locker {
	t.Helper()
	l, err := openKind(k.name, k.at, life)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func openRedis(t *testing.T, life time.Duration) lock.Locker {
	t.Helper()
	return kindOf(t, redis).open(t, life)
}

// eachKind does it for the kinds named.
func eachKind(t *testing.T, names []string, do func(t *testing.T, k *kind)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { do(t, kindOf(t, name)) })
	}
}

// each does it with a locker of each kind.
func each(t *testing.T, do func(t *testing.T, l lock.Locker)) {
	eachKind(t, all, func(t *testing.T, k *kind) {
		// Nobody loses a lock because the machine stands still for a while.
		do(t, k.open(t, long))
	})
}

// long is a lifetime that no test waits for.
const long = 5 * time.Minute

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

// untold is a context whose time is over and whose timer has not fired yet.
type untold struct{ context.Context }

func (untold) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// TestEndedBeforeItsTimer meets the moment between the deadline of a wait, by
// which connections go, and the timer that ends its context: ErrBusy, and not
// what the connection said, is the answer then.
func TestEndedBeforeItsTimer(t *testing.T) {
	if err := lock.Ended(untold{t.Context()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context whose time is over: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := errors.Join(lock.Ended(t.Context()), lock.Ended(soon)); err != nil {
		t.Errorf("contexts that go on: %v", err)
	}
}

// TestBusy tries once, and for a while, what somebody else has.
func TestBusy(t *testing.T) {
	each(t, func(t *testing.T, l lock.Locker) {
		ctx := patient(t)
		h, err := l.Lock(ctx, "busy", lock.Options{})
		must(t, err)
		for _, wait := range []time.Duration{lock.NoWait, 30 * time.Millisecond} {
			if _, err := answered(ctx, l, "busy", lock.Options{Wait: wait}); !errors.Is(err, lock.ErrBusy) {
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
