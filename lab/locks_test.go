package lab

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/lock"
)

// A lock that lets everybody in is found out; one that lets in one at a time is not accused.
func TestTwoHoldersAreCounted(t *testing.T) {
	c := LocksConfig{Contenders: 8}
	for name, at := range map[string]int{"everybody": c.Contenders, "two": 2, "one": 1} {
		var r LockResult
		l := &doors{open: make(chan struct{}, at)}
		if err := c.crowd(t.Context(), l, &r); err != nil || l.held.Load() != 0 || (r.Together > 0) != (at > 1) {
			t.Errorf("%s: two had it at once %d times, %v", name, r.Together, err)
		}
	}
}

// doors is a lock with as many holders as open has room for.
type doors struct {
	lock.Locker
	open chan struct{}
	held atomic.Int64
}

func (d *doors) Lock(context.Context, string, lock.Options) (lock.Held, error) {
	d.open <- struct{}{}
	d.held.Add(1)
	return door{d: d}, nil
}

// door is a lock of doors that is held.
type door struct {
	lock.Held
	d *doors
}

func (h door) Unlock(context.Context) error {
	h.d.held.Add(-1)
	<-h.d.open
	return nil
}

// A kind of lock whose server is not installed is left out with a word; one that was named is an
// error, and so is a comparison of none. Servers that are given are not started.
func TestLocksLeavesOutWhatIsNotInstalled(t *testing.T) {
	gone := errors.New("there is no zkServer.sh")
	start := func(kind string) ([]string, error) {
		if kind == zooLocker {
			return nil, gone
		}
		return []string{"own " + kind}, nil
	}
	var progress strings.Builder
	c := LocksConfig{Lockers: Lockers(), Servers: map[string][]string{redisLocker: {"given"}}, Progress: &progress}
	at, err := c.addresses(true, start)
	if err != nil || len(at) != len(Lockers())-1 || at[zooLocker] != nil || at[redisLocker][0] != "given" || at[Postgres][0] != "own postgres" {
		t.Errorf("%v, %v", at, err)
	}
	if want := "zookeeper is left out: install it, or name one that runs by --zookeeper (there is no zkServer.sh)\n"; progress.String() != want {
		t.Errorf("%q, not %q", progress.String(), want)
	}
	if _, err := c.addresses(false, start); !errors.Is(err, ErrNoServer) || !errors.Is(err, gone) || !strings.Contains(err.Error(), "leave it out with --lockers") {
		t.Errorf("named: %v", err)
	}
	c.Lockers = []string{zooLocker}
	if _, err := c.addresses(true, start); !errors.Is(err, ErrNoServer) || !errors.Is(err, gone) || !strings.Contains(err.Error(), "none of zookeeper is installed") {
		t.Errorf("alone: %v", err)
	}
}
