package plan

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// ask answers a question by the embedded calibration.
func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	a, err := Ask(t.Context(), Default(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEverythingIsGranted holds for each deployment: demand that is there takes the
// whole stock and no more, every request is answered, and the ledger has every grant.
func TestEverythingIsGranted(t *testing.T) {
	rush := Question{Users: 30_000, Presses: 1.5, Stock: 7_001, Over: 2 * time.Second}
	for name, q := range map[string]Question{
		"memory":           {},
		"memory, postgres": {Ledger: Postgres},
		"redis":            {Engine: Redis, Nodes: 3},
		"redis, shards":    {Engine: Redis, Nodes: 2, Shards: 5},
		"redis, sqlite":    {Engine: Redis, Ledger: SQLite},
		"relaxed":          {Engine: Redis, Nodes: 2, Durability: dibs.LevelRelaxed},
		"replicated":       {Engine: Redis, Nodes: 2, Durability: dibs.LevelReplicated},
		"ledgered":         {Engine: Redis, Nodes: 2, Durability: dibs.LevelLedgered},
		"clients here":     {ClientsHere: true, Nodes: 1},
	} {
		q.Users, q.Presses, q.Stock, q.Over, q.Shape = rush.Users, rush.Presses, rush.Stock, rush.Over, Falling
		r, err := simulate(t.Context(), Default(), q.WithDefaults())
		if err != nil {
			t.Fatal(name, err)
		}
		a := r.answer(true)
		if a.Granted != 7_001 || a.Granted+a.Refused != 45_000 || a.SoldOut == nil {
			t.Errorf("%s: %g granted, %g refused, of 7,001 and 45,000", name, a.Granted, a.Refused)
		}
		if r.record.waiting != 0 || a.Lag.Most <= 0 || a.Lag.Worst <= 0 {
			t.Errorf("%s: %g grants are not in the ledger: %+v", name, r.record.waiting, a.Lag)
		}
		if n := r.record.all.TotalCount(); n != 45_000 {
			t.Errorf("%s: %d waits", name, n)
		}
	}
}

// TestUsersHoldOneEach leaves what nobody may take.
func TestUsersHoldOneEach(t *testing.T) {
	for _, presses := range []float64{1, 1.5, 4} {
		a := ask(t, Question{Users: 10_000, Presses: presses, Stock: 20_000, Over: time.Second})
		if a.SoldOut != nil || math.Abs(a.Granted-10_000) > 1 {
			t.Errorf("10,000 users who press %g times were granted %g of 20,000 units", presses, a.Granted)
		}
	}
}

// The peak is of a second, also where the arrivals are counted in parts that last longer.
func TestThePeakOfALongRush(t *testing.T) {
	for _, over := range []time.Duration{10 * time.Second, 10 * time.Minute, 5 * time.Hour} {
		a := ask(t, Question{Users: 100 * int64(over/time.Second), Stock: 100, Over: over})
		if math.Abs(a.Peak-100) > 5 {
			t.Errorf("100 users a second over %s: the peak is %g/s", over, a.Peak)
		}
	}
}

// TestLevels take longer the more they promise.
func TestLevels(t *testing.T) {
	q := Question{Users: 20_000, Stock: 20_000, Over: 4 * time.Second, Engine: Redis, Nodes: 2}
	last := 0.0
	for _, level := range []string{dibs.LevelRelaxed, dibs.LevelDurable, dibs.LevelReplicated, dibs.LevelLedgered} {
		q.Durability = level
		a := ask(t, q)
		if a.Grants.P50 <= last {
			t.Errorf("at %s half of the grants wait %g ms, at the level below %g", level, a.Grants.P50, last)
		}
		last = a.Grants.P50
	}
}

// TestRepeatable gives the same answer for the same question, and another order of
// arrivals for another seed.
func TestRepeatable(t *testing.T) {
	q := Question{Users: 50_000, Stock: 10_000, Over: time.Second, Engine: Redis, Nodes: 3}
	first, again := ask(t, q), ask(t, q)
	if !reflect.DeepEqual(first, again) {
		t.Error("two answers to a question differ")
	}
	q.Seed = 2
	if other := ask(t, q); reflect.DeepEqual(first.Series, other.Series) {
		t.Error("another seed changes nothing")
	}
}

// TestParcels gives nearly the same answer for parcels of one request and of many.
func TestParcels(t *testing.T) {
	q := Question{Users: mostParcels, Stock: 5_000, Over: 2 * time.Second, Engine: Redis, Nodes: 2}.WithDefaults()
	one := ask(t, q)
	many := q
	many.Users, many.Stock, many.Cores = 10*q.Users, 10*q.Stock, 10*q.Cores
	cal := Default()
	cal.Engines[Redis].ClaimUS /= 10
	cal.Ledgers[MySQL].RowUS /= 10
	cal.Ledgers[MySQL].NodeUS /= 10
	big, err := Ask(t.Context(), cal, many)
	if err != nil {
		t.Fatal(err)
	}
	if big.ParcelRequests != 10 || one.ParcelRequests != 1 {
		t.Fatalf("parcels of %g and %g", one.ParcelRequests, big.ParcelRequests)
	}
	if ratio := big.PerSecond / one.PerSecond; ratio < 9.5 || ratio > 10.5 {
		t.Errorf("ten times the crowd on ten times the machine: %g times the rate", ratio)
	}
}

// TestUnfit refuses to answer without the costs of the engine or the ledger.
func TestUnfit(t *testing.T) {
	cal := Default()
	delete(cal.Ledgers, Postgres)
	if _, err := Ask(t.Context(), cal, Question{Users: 10, Stock: 1, Ledger: Postgres}); !errors.Is(err, ErrCalibration) {
		t.Errorf("without the ledger's costs: %v", err)
	}
	delete(cal.Engines, Redis)
	if _, err := Ask(t.Context(), cal, Question{Users: 10, Stock: 1, Engine: Redis}); !errors.Is(err, ErrCalibration) {
		t.Errorf("without the engine's costs: %v", err)
	}
}
