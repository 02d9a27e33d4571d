package room_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"
)

// naive is a waiting room as one would write it down: everybody with their own
// admission, time in steps of a millisecond.
type naive struct {
	tail     int64
	gone     map[int64]bool
	allowed  float64
	admitted int64
}

// step lets in whom a millisecond more allows.
func (n *naive) step(perMS float64, burst int64, open bool) {
	most := math.Max(n.allowed, float64(n.tail+burst))
	if open {
		n.allowed = math.Min(n.allowed+perMS, most)
	}
	for n.admitted < int64(n.allowed) {
		n.admitted++
		if n.gone[n.admitted] {
			delete(n.gone, n.admitted)
			n.allowed = math.Min(n.allowed+1, most)
		}
	}
}

// TestTurnsAgainstAModel has random people come, leave and wait.
func TestTurnsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Such rates are whole in binary: both add up to the same.
		rate, burst := 125*rapid.Int64Range(1, 4).Draw(t, "rate"), rapid.Int64Range(1, 20).Draw(t, "burst")
		c := &dibs.Campaign{StartsAt: noon, EndsAt: noon.Add(hour), State: dibs.Published, Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{
			Mode: dibs.FIFO, Rate: rate, Burst: burst,
		}}}
		turns, model := room.NewTurns(c), &naive{gone: map[int64]bool{}}
		nowMS, open, before := noon.UnixMilli(), true, int64(0)
		model.allowed = float64(burst)
		model.step(0, burst, true)
		turns.Advance(nowMS)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				for range rapid.IntRange(1, 30).Draw(t, "people") {
					model.tail++
					if n := turns.Join(); n != model.tail {
						t.Fatalf("number %d, want %d", n, model.tail)
					}
				}
			case 1:
				if model.tail > model.admitted {
					place := rapid.Int64Range(model.admitted+1, model.tail).Draw(t, "who leaves")
					turns.GiveUp(place)
					model.gone[place] = true
				}
			case 2:
				open = !open
				turns.Open(open)
			}
			for wait := rapid.Int64Range(0, 300).Draw(t, "wait in ms"); wait > 0; wait-- {
				model.step(float64(rate)/1000, burst, open)
				nowMS++
			}
			got := turns.Advance(nowMS)
			if got != model.admitted {
				t.Fatalf("admitted up to %d, the model up to %d", got, model.admitted)
			}
			if got < before {
				t.Fatalf("admitted up to %d, it was %d", got, before)
			}
			before = got
		}
	})
}

// In any time, no more are admitted than the rate and one burst allow, and when
// enough people wait, no fewer.
func TestTheRateIsKept(t *testing.T) {
	c := &dibs.Campaign{StartsAt: noon, EndsAt: noon.Add(hour), State: dibs.Published, Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{
		Mode: dibs.FIFO, Rate: 20, Per: dibs.Duration(time.Minute), Burst: 5,
	}}}
	turns := room.NewTurns(c)
	for range 100 {
		turns.Join()
	}
	const step = 12 * time.Second
	last := -2 * time.Minute
	at := func(d time.Duration) int64 {
		for ; last < d; last += step {
			turns.Advance(noon.Add(last).UnixMilli())
		}
		return turns.Advance(noon.Add(d).UnixMilli())
	}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{-time.Minute, 0}, {-time.Millisecond, 0}, {0, 5}, {3 * time.Second, 6}, {5999 * time.Millisecond, 6}, {6 * time.Second, 7}, {time.Minute, 25}, {5 * time.Minute, 105}, {time.Hour, 105}} {
		if got := at(step.after); got != step.want {
			t.Errorf("after %s: admitted up to %d, want %d", step.after, got, step.want)
		}
	}
	// Nobody waited for an hour: a burst may pass at once, and no more.
	for range 50 {
		turns.Join()
	}
	if got := at(time.Hour); got != 105 {
		t.Errorf("after a quiet hour: up to %d, want 105 of 150", got)
	}
	if got := at(time.Hour + 6*time.Second); got != 107 {
		t.Errorf("6 s later: up to %d, want 107", got)
	}
}

// A time in which nobody could look is not made up for: afterwards a burst is let
// in at once, or two seconds' worth where that is more, and then the rate holds.
func TestAnOutageIsNotMadeUpFor(t *testing.T) {
	for _, c := range []struct{ rate, burst, after, later int64 }{{10, 5, 25, 35}, {10, 50, 100, 110}} {
		turns := room.NewTurns(&dibs.Campaign{StartsAt: noon, EndsAt: noon.Add(hour), State: dibs.Published, Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{
			Mode: dibs.FIFO, Rate: c.rate, Burst: c.burst,
		}}})
		for range 10_000 {
			turns.Join()
		}
		turns.Advance(noon.UnixMilli())
		if got := turns.Advance(noon.Add(10 * time.Minute).UnixMilli()); got != c.after {
			t.Errorf("after ten minutes without a look: up to %d, want %d", got, c.after)
		}
		if got := turns.Advance(noon.Add(10*time.Minute + time.Second).UnixMilli()); got != c.later {
			t.Errorf("a second later: up to %d, want %d", got, c.later)
		}
	}
}
