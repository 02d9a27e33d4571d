package redpacket

import (
	"context"
	"io"
	"math"

	"github.com/dibs-dev/dibs"
)

// The limits of Measure.
const (
	MaxPlaces = 1_000
	MaxRounds = 1_000_000
)

// Fairness is what many divisions of one red packet gave, place by place.
type Fairness struct {
	RedPacket dibs.RedPacketSpec `json:"redpacket"`
	Rounds    int                `json:"rounds"`
	// All sums up the places: its Best is what each of them would have if none
	// were favoured.
	All Place `json:"all"`
	// Places are in the order in which the shares are given out.
	Places []Place `json:"places"`
}

// Place is what the one who comes in this place got. Amounts are minor units.
type Place struct {
	// Place counts from 1; 0 for all together.
	Place int     `json:"place,omitempty"`
	Mean  float64 `json:"mean"`
	// Spread is the standard deviation.
	Spread float64 `json:"spread"`
	Least  int64   `json:"least"`
	Most   int64   `json:"most"`
	// Best is the part of the rounds in which this place had the best luck, the
	// greatest share (手气最佳). Those who tie for it have a part of the round each.
	Best float64 `json:"best"`
}

// Measure divides a red packet rounds times and sums up what each place got. It
// returns an *dibs.Error of InvalidRequest for what cannot be divided, for more
// shares than MaxPlaces, and unless 1 ≤ rounds ≤ MaxRounds; and the context's
// error when it ends before.
//
// random is as for Split; it is read once, whatever the number of rounds.
func Measure(ctx context.Context, spec dibs.RedPacketSpec, rounds int, random io.Reader) (*Fairness, error) {
	fs := spec.Faults("")
	if spec.Count > MaxPlaces {
		fs = append(fs, dibs.Fault{Field: "/count", Problem: dibs.Textf("must be at most %d to be measured", "测量时最多为 %d", MaxPlaces)})
	}
	if rounds < 1 || rounds > MaxRounds {
		fs = append(fs, dibs.Fault{Field: "/rounds", Problem: dibs.Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxRounds)})
	}
	if len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	d, err := newDivider(spec, random)
	if err != nil {
		return nil, err
	}
	m := newMeasuring(&d.spec)
	shares := make([]int64, d.spec.Count)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.divide(shares); err != nil {
			return nil, err
		}
		m.add(shares)
	}
	return m.sumUp(&d.spec, rounds), nil
}

// measuring adds up divisions. Sums are of the distance from the mean, which is
// known: so they lose no digits.
type measuring struct {
	mean   float64
	places []Place
	first  []float64 // the sum of the distances, by place
	second []float64 // the sum of their squares
}

func newMeasuring(spec *dibs.RedPacketSpec) *measuring {
	m := &measuring{
		mean:   float64(spec.Total.Amount) / float64(spec.Count),
		places: make([]Place, spec.Count),
		first:  make([]float64, spec.Count),
		second: make([]float64, spec.Count),
	}
	for i := range m.places {
		m.places[i] = Place{Place: i + 1, Least: math.MaxInt64}
	}
	return m
}

func (m *measuring) add(shares []int64) {
	best, ties := int64(0), 0
	for i, s := range shares {
		p := &m.places[i]
		p.Least, p.Most = min(p.Least, s), max(p.Most, s)
		far := float64(s) - m.mean
		m.first[i] += far
		m.second[i] += far * far
		switch {
		case s > best:
			best, ties = s, 1
		case s == best:
			ties++
		}
	}
	for i, s := range shares {
		if s == best {
			m.places[i].Best += 1 / float64(ties)
		}
	}
}

func (m *measuring) sumUp(spec *dibs.RedPacketSpec, rounds int) *Fairness {
	r, n := float64(rounds), float64(len(m.places))
	all := Place{Mean: m.mean, Least: math.MaxInt64, Best: 1 / n}
	second := 0.0
	for i := range m.places {
		p := &m.places[i]
		far := m.first[i] / r
		p.Mean = m.mean + far
		p.Spread = math.Sqrt(max(0, m.second[i]/r-far*far))
		p.Best /= r
		second += m.second[i]
		all.Least, all.Most = min(all.Least, p.Least), max(all.Most, p.Most)
	}
	all.Spread = math.Sqrt(second / r / n)
	return &Fairness{RedPacket: *spec, Rounds: rounds, All: all, Places: m.places}
}
