package idgen_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/idgen"
)

// TestSnowflakeClock leases, turns the clock back, and leases the same worker
// again: no id comes twice.
func TestSnowflakeClock(t *testing.T) {
	ctx := t.Context()
	clock := handAt(time.Now())
	_, err := theRedis.Do(ctx, "DEL", "clock:workers")
	must(t, err)
	open := func() *idgen.Snowflake {
		// Long enough for a machine that stands still for a while.
		s, err := idgen.OpenSnowflake(ctx, theRedis.URL(), "clock:", 5*time.Minute, clock.now)
		must(t, err)
		return s
	}
	s := open()
	seen := map[int64]bool{}
	last := int64(0)
	take := func(s *idgen.Snowflake) {
		for range 100 {
			id, err := s.Next()
			must(t, err)
			if seen[id] {
				t.Fatalf("the id %d comes twice", id)
			}
			seen[id] = true
			last = max(last, id)
		}
	}
	take(s)
	before := last
	clock.set(clock.now().Add(-time.Hour))
	take(s)
	if last <= before {
		t.Error("with a clock that steps back the ids do not rise")
	}
	first := s.Worker()
	other := open()
	if other.Worker() == first {
		t.Errorf("two have the worker %d", first)
	}
	take(other)
	other.Close()
	s.Close()
	// The lease ends; the same worker goes to the next one.
	field := strconv.FormatInt(first, 10)
	m, err := theRedis.Do(ctx, "HGET", "clock:workers", field)
	must(t, err)
	text, err := m.ToString()
	must(t, err)
	_, err = theRedis.Do(ctx, "HSET", "clock:workers", field, text[:strings.LastIndex(text, " ")]+" 0")
	must(t, err)
	s = open()
	if s.Worker() != first {
		t.Errorf("the worker %d goes to nobody, %d does", first, s.Worker())
	}
	take(s)
	s.Close()
}

// A process whose worker another one has goes on with a free one, and takes its own back where
// Redis has lost it: Next works again, and no id comes twice.
func TestSnowflakeLosesItsWorker(t *testing.T) {
	ctx := t.Context()
	_, err := theRedis.Do(ctx, "DEL", "lost:workers")
	must(t, err)
	s, err := idgen.OpenSnowflake(ctx, theRedis.URL(), "lost:", time.Second, nil)
	must(t, err)
	defer s.Close()
	seen := map[int64]bool{}
	take := func() bool {
		id, err := s.Next()
		if err == nil && seen[id] {
			t.Fatalf("the id %d comes twice", id)
		}
		seen[id] = err == nil
		return err == nil
	}
	if s.Worker() != 0 || !take() {
		t.Fatalf("the first worker is %d", s.Worker())
	}
	_, err = theRedis.Do(ctx, "DEL", "lost:workers")
	must(t, err)
	await := func(what string, met func() bool) {
		t.Helper()
		for until := time.Now().Add(20 * time.Second); !met(); <-time.After(10 * time.Millisecond) {
			take()
			if time.Now().After(until) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	await("its worker is leased again", func() bool {
		m, err := theRedis.Do(ctx, "HLEN", "lost:workers")
		must(t, err)
		n, err := m.AsInt64()
		must(t, err)
		return n == 1
	})
	// Longer than any lease of before.
	later := time.Now().Add(2 * time.Second)
	await("it goes on with its own", func() bool { return time.Now().After(later) && take() && s.Worker() == 0 })

	_, err = theRedis.Do(ctx, "HSET", "lost:workers", "0", "another 1 9999999999999")
	must(t, err)
	await("it goes on with a free one", func() bool { return s.Worker() == 1 && take() })
}
