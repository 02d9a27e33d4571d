package redpacket_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/redpacket"
)

func TestMeasure(t *testing.T) {
	for _, split := range dibs.Splits() {
		p := packet(10_003, 10, split, 100, 1900)
		const rounds = 20_000
		f, err := redpacket.Measure(t.Context(), p, rounds, seeded(3))
		if err != nil {
			t.Fatal(err)
		}
		again, err := redpacket.Measure(t.Context(), p, rounds, seeded(3))
		if err != nil || !reflect.DeepEqual(f, again) {
			t.Errorf("%s: the same seed gave another table, %v", split, err)
		}
		if f.Rounds != rounds || f.RedPacket != p || len(f.Places) != 10 || f.All.Mean != 1000.3 || f.All.Best != 0.1 {
			t.Errorf("%s: %+v", split, f)
		}
		mean, square, best := 0.0, 0.0, 0.0
		for i, at := range f.Places {
			mean += at.Mean / 10
			square += (at.Spread*at.Spread + (at.Mean-1000.3)*(at.Mean-1000.3)) / 10
			best += at.Best
			if at.Place != i+1 || at.Least < max(100, f.All.Least) || at.Most > min(1900, f.All.Most) || at.Least > at.Most {
				t.Errorf("%s: %+v", split, at)
			}
			// Within five standard errors.
			if math.Abs(at.Mean-1000.3) > 5*at.Spread/math.Sqrt(rounds) || math.Abs(at.Best-0.1) > 5*0.3/math.Sqrt(rounds) {
				t.Errorf("%s: a place is favoured: %+v", split, at)
			}
		}
		if math.Abs(mean-1000.3) > 1e-6 || math.Abs(math.Sqrt(square)-f.All.Spread) > 1e-6 || math.Abs(best-1) > 1e-6 {
			t.Errorf("%s: the places have mean %f, spread %f, best %f; all: %+v", split, mean, math.Sqrt(square), best, f.All)
		}
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	var e *dibs.Error
	_, err := redpacket.Measure(t.Context(), packet(0, redpacket.MaxPlaces+1, "", 0, 0), 0, nil)
	if !errors.As(err, &e) || len(e.Faults) != 3 || e.Faults[1].Field != "/count" || e.Faults[2].Field != "/rounds" {
		t.Errorf("%v", err)
	}
	if _, err := redpacket.Measure(t.Context(), packet(10, 5, "", 0, 0), redpacket.MaxRounds+1, nil); !errors.Is(err, dibs.ErrInvalid) {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := redpacket.Measure(ended, packet(10, 5, "", 0, 0), redpacket.MaxRounds, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
}
