package lock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lock"
)

// waits are the ways to wait for a lock that is not to be had.
var waits = []struct {
	name    string
	options lock.Options
	// within ends the context; 0 for never.
	within time.Duration
}{
	{"no wait", lock.Options{Wait: lock.NoWait}, 0},
	{"a millisecond", lock.Options{Wait: time.Millisecond}, 0},
	{"a moment", lock.Options{Wait: 300 * time.Millisecond}, 0},
	{"a moment, as an owner", lock.Options{Wait: 300 * time.Millisecond, Owner: "bob"}, 0},
	{"until the context ends", lock.Options{}, 700 * time.Millisecond},
}

// eachWait waits for a lock in each of these ways, and wants that error.
func eachWait(t *testing.T, l lock.Locker, name string, want error) {
	t.Helper()
	for _, w := range waits {
		ask := func() (lock.Held, error) {
			ctx := t.Context()
			if w.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, w.within)
				defer cancel()
			}
			return l.Lock(ctx, name, w.options)
		}
		begun := time.Now()
		h, err := ask()
		// On a machine that stands still for a while, a server that is there does not answer
		// in time either.
		for n := 0; n < 20 && errors.Is(want, lock.ErrBusy) && errors.Is(err, lock.ErrNoMajority); n++ {
			begun = time.Now()
			h, err = ask()
		}
		took := time.Since(begun)
		if err == nil {
			must(t, h.Unlock(t.Context()))
		}
		// A context that ends is told as well, and instead where the lock is held.
		ended := errors.Is(err, context.DeadlineExceeded)
		if w.within == 0 && ended || w.within > 0 && !ended {
			t.Errorf("%s: %v", w.name, err)
		}
		told := errors.Is(err, want) || w.within > 0 && errors.Is(want, lock.ErrBusy)
		if !told || errors.Is(err, lock.ErrNoMajority) != errors.Is(want, lock.ErrNoMajority) {
			t.Errorf("%s: %v, want %v", w.name, err, want)
		}
		if took > 10*time.Second {
			t.Errorf("%s: it took %s", w.name, took)
		}
	}
}

// TestNoMajority: when most servers do not answer, every way to wait is told so,
// whatever the others say; a lock that is held is busy.
func TestNoMajority(t *testing.T) {
	died := func(t *testing.T, n int) { kill(t, n) }
	hung := func(t *testing.T, n int) {
		must(t, theThree[n].Freeze())
		t.Cleanup(func() { must(t, theThree[n].Thaw()) })
	}
	type spoil = func(*testing.T, int)
	for _, c := range []struct {
		name string
		// spoilt is what happens to the servers, from the first on.
		spoilt []spoil
		four   bool
		// held says that somebody has the lock at all servers.
		held bool
		want error
	}{
		{"held", nil, false, true, lock.ErrBusy},
		{"held, one dead", []spoil{died}, false, true, lock.ErrBusy},
		{"held, one hangs", []spoil{hung}, false, true, lock.ErrBusy},
		{"two dead", []spoil{died, died}, false, false, lock.ErrNoMajority},
		{"two hang", []spoil{hung, hung}, false, false, lock.ErrNoMajority},
		{"one dead, one hangs", []spoil{died, hung}, false, false, lock.ErrNoMajority},
		{"two dead, the third says held", []spoil{died, died}, false, true, lock.ErrNoMajority},
		{"two hang, the third says held", []spoil{hung, hung}, false, true, lock.ErrNoMajority},
		{"all dead", []spoil{died, died, died}, false, false, lock.ErrNoMajority},
		{"all hang", []spoil{hung, hung, hung}, false, true, lock.ErrNoMajority},
		{"of four two dead, two say held", []spoil{died, died}, true, true, lock.ErrNoMajority},
		{"of four two hang, two say held", []spoil{hung, hung}, true, true, lock.ErrNoMajority},
		{"of four one dead, three say held", []spoil{died}, true, true, lock.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kindOf(t, majority)
			all := theThree
			if c.four {
				all = append([]*servers.Redis{theRedis}, theThree...)
				k = &kind{name: majority}
				for _, r := range all {
					k.at = append(k.at, r.URL())
				}
			}
			l := k.open(t, 4*short)
			if c.held {
				for _, r := range all {
					hold(t, r, "reach")
				}
			}
			for n, spoil := range c.spoilt {
				spoil(t, n)
			}
			eachWait(t, l, "reach", c.want)
		})
	}
}

// hold takes a lock at one server, until the end of the test.
func hold(t *testing.T, r *servers.Redis, name string) {
	t.Helper()
	_, err := r.Do(t.Context(), "DEL", "lock:{"+name+"}")
	must(t, err)
	l, err := lock.OpenRedis(lock.RedisConfig{URL: r.URL(), Lifetime: long})
	must(t, err)
	// It does not matter here what the server has forgotten, or cannot take back.
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Lock(t.Context(), name, lock.Options{})
	must(t, err)
}

// commands is how many scripts the first of the three servers has run.
func commands(t *testing.T) (n int) {
	t.Helper()
	info, err := theThree[0].Do(t.Context(), "INFO", "commandstats")
	must(t, err)
	text, err := info.ToString()
	must(t, err)
	for line := range strings.Lines(text) {
		if script, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			calls, _, _ := strings.Cut(script, ",")
			n, err = strconv.Atoi(calls)
			must(t, err)
		}
	}
	return n
}

// TestMajorityLostWhileWaiting freezes two servers while somebody waits for a lock that
// is held: at the end nobody knows whether it still is.
func TestMajorityLostWhileWaiting(t *testing.T) {
	for _, o := range []lock.Options{{Wait: 10 * time.Second}, {}} {
		err, late := lostWhileWaiting(t, o)
		for n := 0; late && n < 5; n++ {
			err, late = lostWhileWaiting(t, o)
		}
		if !errors.Is(err, lock.ErrNoMajority) || errors.Is(err, lock.ErrBusy) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// lostWhileWaiting returns what is told to who waits. late says that half of the wait was
// over when the servers froze: on a slow machine all of it may have been.
func lostWhileWaiting(t *testing.T, o lock.Options) (err error, late bool) {
	t.Helper()
	l := kindOf(t, majority).open(t, long)
	for _, r := range theThree {
		hold(t, r, "lost")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, done := time.Now(), make(chan error, 1)
	go func() {
		_, err := l.Lock(ctx, "lost", o)
		done <- err
	}()
	// Some tries later it has surely been told that the lock is held.
	for before := commands(t); commands(t) < before+10; {
	}
	for _, r := range theThree[:2] {
		must(t, r.Freeze())
	}
	if o.Wait == 0 {
		time.AfterFunc(2*time.Second, cancel)
	}
	late = o.Wait > 0 && time.Since(begun) > o.Wait/2
	err = <-done
	for _, r := range theThree[:2] {
		must(t, r.Thaw())
	}
	return err, late
}
