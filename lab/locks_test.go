package lab

import (
	"errors"
	"strings"
	"testing"
)

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
