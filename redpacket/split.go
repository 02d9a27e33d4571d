package redpacket

import (
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"

	"github.com/dibs-dev/dibs"
)

// Split returns the shares of a red packet in minor units: spec.Count of them,
// each from spec.Min to spec.Max, with spec.Total as their sum, shuffled. It
// returns an *dibs.Error of InvalidRequest with every fault of a spec that
// cannot be divided, before it reads from random.
//
// random yields the 32 bytes of the seed; nil takes them from the operating
// system, which is what everything but a test wants. The numbers come from
// ChaCha8 under that seed: it cannot be guessed from what it put out, and a
// million numbers cost milliseconds and one read of the kernel's randomness.
// The same seed gives the same shares in this version of dibs; another version
// may divide differently. A *rand.ChaCha8 is a reader for tests.
//
// Split keeps no state and may be called from several goroutines, each with
// its own random. A million shares take 8 MB, with LineCut 24 MB for a moment.
func Split(spec dibs.RedPacketSpec, random io.Reader) ([]int64, error) {
	d, err := newDivider(spec, random)
	if err != nil {
		return nil, err
	}
	shares := make([]int64, d.spec.Count)
	if err := d.divide(shares); err != nil {
		return nil, err
	}
	return shares, nil
}

// divider divides one red packet, as often as it is asked to.
type divider struct {
	spec dibs.RedPacketSpec
	rng  source
	// excess is what there is above the least of every share; room is how much
	// of it one share may have.
	excess, room int64
	// cuts is the memory of lineCut, kept from one division to the next.
	cuts []int64
}

func newDivider(spec dibs.RedPacketSpec, random io.Reader) (*divider, error) {
	if fs := spec.Faults(""); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	if random == nil {
		random = rand.Reader
	}
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return nil, fmt.Errorf("redpacket: reading the seed: %w", err)
	}
	d := &divider{spec: spec.WithDefaults(), rng: source{mathrand.NewChaCha8(seed)}}
	d.excess = d.spec.Total.Amount - d.spec.Min*d.spec.Count
	d.room = d.excess
	if d.spec.Max != 0 {
		d.room = min(d.room, d.spec.Max-d.spec.Min)
	}
	return d, nil
}

// divide fills shares, of which there are spec.Count.
func (d *divider) divide(shares []int64) error {
	d.draw(shares)
	// Drawn one after the other, later shares of DoubleMean spread wider and the
	// first ones of Equal are greater. Shuffled, none is better than another.
	d.rng.shuffle(shares)
	for i := range shares {
		shares[i] += d.spec.Min
	}
	return check(&d.spec, shares)
}

// draw fills shares with what each has above the least, in the split's order.
func (d *divider) draw(shares []int64) {
	switch d.spec.Split {
	case dibs.LineCut:
		if d.likelyWithin(len(shares)) {
			d.lineCut(shares)
			if slices.Max(shares) <= d.room {
				return
			}
		}
		d.boundedCut(shares)
	case dibs.Equal:
		d.equal(shares)
	default:
		d.doubleMean(shares)
	}
}

// check asserts what was promised of the shares. It is the last line of defence
// and must never fire.
func check(spec *dibs.RedPacketSpec, shares []int64) error {
	if int64(len(shares)) != spec.Count {
		return fmt.Errorf("redpacket: %d shares instead of %d", len(shares), spec.Count)
	}
	sum := int64(0)
	for i, s := range shares {
		if s < spec.Min || (spec.Max != 0 && s > spec.Max) {
			return fmt.Errorf("redpacket: share %d is %d, not from %d to %d", i+1, s, spec.Min, spec.Max)
		}
		// Each addend is below 2^53 and the sum is compared at once: no overflow.
		if sum += s; sum > spec.Total.Amount {
			break
		}
	}
	if sum != spec.Total.Amount {
		return fmt.Errorf("redpacket: the shares do not sum to %d", spec.Total.Amount)
	}
	return nil
}
