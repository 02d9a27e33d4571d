package idgen_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/idgen"
)

// hand is a clock that a test sets.
type hand struct{ at atomic.Int64 }

func (h *hand) set(at time.Time) { h.at.Store(at.UnixNano()) }

func (h *hand) now() time.Time { return time.Unix(0, h.at.Load()) }

func handAt(at time.Time) *hand { h := &hand{}; h.set(at); return h }

func second(id int64) time.Time { at, _ := idgen.DailyTime(id); return at }

func awaitSecond(t *testing.T, d *idgen.Daily, at time.Time) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		id, err := d.Next(ctx)
		must(t, err)
		if !second(id).Before(at) {
			return id
		}
		if ctx.Err() != nil {
			t.Fatalf("the clock stays at %s", second(id))
		}
	}
}

// TestDailyClock turns the clock of a process over midnight and back, and starts
// another one on the earlier day.
func TestDailyClock(t *testing.T) {
	c, err := idgen.OpenRedisCounter(theRedis.URL(), "clock-"+rand.Text()+":")
	must(t, err)
	defer c.Close()
	ctx := t.Context()
	evening := time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC)
	clock := handAt(evening)
	d, err := idgen.NewDaily(c, "clock", 10, clock.now)
	must(t, err)
	defer d.Close()
	first, err := d.Next(ctx)
	must(t, err)
	at, count := idgen.DailyTime(first)
	if !at.Equal(evening) || count != 1 {
		t.Errorf("the first id is of %s and has the count %d", at, count)
	}
	clock.set(evening.Add(time.Second))
	next := awaitSecond(t, d, evening.Add(time.Second))
	if _, count := idgen.DailyTime(next); count != 1 {
		t.Errorf("the day begins with the count %d", count)
	}
	clock.set(evening.Add(-time.Hour))
	last := next
	for range 100 {
		id, err := d.Next(ctx)
		must(t, err)
		if id <= last {
			t.Fatalf("with a clock that steps back %d comes after %d", id, last)
		}
		last = id
	}
	other, err := idgen.NewDaily(c, "clock", 10, clock.now)
	must(t, err)
	defer other.Close()
	again, err := other.Next(ctx)
	must(t, err)
	taken, err := d.Count(ctx, evening)
	must(t, err)
	if _, count := idgen.DailyTime(again); count <= 10 || int64(count) > taken {
		t.Errorf("a process of the earlier day begins with the count %d, taken are %d", count, taken)
	}
	if n, err := d.Count(ctx, evening.AddDate(1, 0, 0)); n != 0 || err != nil {
		t.Errorf("of a day to come %d are taken, %v", n, err)
	}
}
