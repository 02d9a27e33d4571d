package simulation

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// dice are one subject's chances. Not safe for concurrent use.
type dice struct{ *rand.Rand }

// newDice returns the chances of a subject in the run of a seed.
// Each subject has a stream of its own, so a subject that draws once more changes
// nothing for all others, and a run changes little when code is added.
func newDice(seed uint64, subject string) *dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(subject)) // it never fails
	return &dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

func (d *dice) chance(p float64) bool { return d.Float64() < p }

// upTo returns a time from 0 to most, to the nanosecond: hardly ever do two
// things happen at the same moment.
func (d *dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(int64(max(most, 0)) + 1))
}

// short is how long a message takes.
func (d *dice) short() time.Duration { return 20*time.Microsecond + d.upTo(400*time.Microsecond) }

// between returns a time from low to high.
func (d *dice) between(low, high time.Duration) time.Duration { return low + d.upTo(high-low) }

// one returns one of several.
func one[T any](d *dice, of ...T) T { return of[d.IntN(len(of))] }

// chances are the dice of many subjects.
// The mutex guards the map and every dice in it.
type chances struct {
	sync.Mutex
	seed uint64
	dice map[string]*dice
}

func newChances(seed uint64) *chances { return &chances{seed: seed, dice: map[string]*dice{}} }

// of returns the dice of a subject. The caller holds the lock until it has thrown them.
func (c *chances) of(subject string) *dice {
	d := c.dice[subject]
	if d == nil {
		d = newDice(c.seed, subject)
		c.dice[subject] = d
	}
	return d
}
