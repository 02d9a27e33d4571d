package redpacket

import (
	"math"
	"math/bits"
)

// The functions here divide d.excess into what each share has above the least,
// 0 ≤ share ≤ d.room. That there is a way to do it was checked before.

// equal gives all the same, and the first ones one more.
func (d *divider) equal(shares []int64) {
	n := int64(len(shares))
	each, more := d.excess/n, d.excess%n
	for i := range shares {
		shares[i] = each
		if int64(i) < more {
			shares[i]++
		}
	}
}

// doubleMean draws each share evenly from the widest interval that has the mean
// of what is left in its middle: from 0 to twice the mean, or, when that is
// beyond the room, from as far below the mean as the room is above it.
//
// The invariant is 0 ≤ left ≤ k·room for the k shares that remain; it leaves
// exactly one value for the last share. Twice the mean, rounded up, is at most
// left as long as k ≥ 2, and so is its mirror image.
func (d *divider) doubleMean(shares []int64) {
	left := d.excess
	for i := range shares {
		k := int64(len(shares) - i)
		if k == 1 {
			shares[i] = left
			break
		}
		if (2*left+k-1)/k <= d.room {
			shares[i] = d.twice(left, k)
		} else {
			// k·room < 2·left + k: it does not overflow.
			shares[i] = d.room - d.twice(k*d.room-left, k)
		}
		left -= shares[i]
	}
}

// twice draws from 0 to twice the mean of k shares that sum to left, so that the
// mean of the draw is the mean: a fraction of a minor unit is rounded up as often
// as it is great.
func (d *divider) twice(left, k int64) int64 {
	top := 2 * left / k
	if part := 2*left - top*k; part > 0 && d.rng.below(k) < part {
		top++
	}
	return d.rng.below(top + 1)
}

// lineCut picks one of all ways to divide the excess without an upper bound,
// each as likely as any other. A way is a row of units and cuts: `**|*||` is
// 2, 1, 0, 0. The positions of the rarer of the two are drawn without
// replacement.
func (d *divider) lineCut(shares []int64) {
	n := int64(len(shares))
	row := d.excess + n - 1
	if d.excess < n-1 {
		clear(shares)
		d.positions(d.excess, row, func(nth, at int64) { shares[at-nth]++ })
		return
	}
	after := int64(0)
	d.positions(n-1, row, func(nth, at int64) {
		shares[nth] = at - after
		after = at + 1
	})
	shares[n-1] = row - after
}

// likelyWithin reports whether a line cut without an upper bound has a fair
// chance to keep it: the shares above the room number about n·exp(-room/mean).
// When it does keep it, it is an even choice among the ways that do.
func (d *divider) likelyWithin(n int) bool {
	return float64(d.room)*float64(n) >= float64(d.excess)*math.Log(float64(n))
}

// positions draws count different positions of a row, every choice as likely as
// any other, and yields them in ascending order. 2·count ≤ row + 1 < 2^53.
//
// They are kept in a hash table whose hash is monotone and whose clusters are
// sorted (linear probing sort), so that one pass finds duplicates and another
// reads the order, in linear time. An empty slot is 0; a position is kept plus 1.
func (d *divider) positions(count, row int64, yield func(nth, at int64)) {
	slots := 2 * count
	d.cuts = append(d.cuts[:0], make([]int64, slots)...)
	scale := float64(slots) / float64(row)
	for kept := int64(0); kept < count; {
		at := d.rng.below(row)
		if d.keep(int(float64(at)*scale), at+1) {
			kept++
		}
	}
	nth := int64(0)
	for _, v := range d.cuts {
		if v != 0 {
			yield(nth, v-1)
			nth++
		}
	}
}

// keep puts v into its place at or after slot, and moves greater ones on. It
// reports whether v is new.
func (d *divider) keep(slot int, v int64) bool {
	for ; slot < len(d.cuts); slot++ {
		switch here := d.cuts[slot]; {
		case here == 0:
			d.cuts[slot] = v
			return true
		case here == v:
			return false
		case here > v:
			d.cuts[slot], v = v, here
		}
	}
	// The last cluster may grow beyond the table.
	d.cuts = append(d.cuts, v)
	return true
}

// exchanges is how many rounds of exchanges boundedCut makes. Each takes the
// variance a third of the way to its limit, so that after 16 a seven-hundredth of
// the distance is left: the spread is off by less than a thousandth.
const exchanges = 16

// boundedCut picks one of all ways to divide the excess within the room, each
// as likely as any other as nearly as matters. It begins with doubleMean, which
// keeps the bounds, and then lets pairs of shares put together what they have and
// divide it anew, evenly among all ways that keep the bounds. An exchange
// leaves the even distribution as it is, so repeated ones lead to it. Partners are
// 1, 2, 4… places apart, so that any two shares meet over a few others.
func (d *divider) boundedCut(shares []int64) {
	d.doubleMean(shares)
	strides := bits.Len(uint(len(shares) - 1))
	for round := range exchanges {
		stride := 1 << (round % strides)
		for block := 0; block+stride < len(shares); block += 2 * stride {
			a := shares[block : block+stride]
			b := shares[block+stride : min(block+2*stride, len(shares))]
			for i := range b {
				both := a[i] + b[i]
				low := max(0, both-d.room)
				a[i] = low + d.rng.below(both-2*low+1)
				b[i] = both - a[i]
			}
		}
	}
}
