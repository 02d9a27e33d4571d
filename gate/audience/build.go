package audience

import (
	"fmt"

	"github.com/dibs-dev/dibs"
)

// build makes a set of n users that come in the order of their prints.
func build(p *printer, n int64, each func(add func(user string) error) error) (*Set, error) {
	b := newSetBuilder(p, n)
	if err := each(func(user string) error { return b.add(p.of(user)) }); err != nil {
		return nil, err
	}
	if b.s.n != n {
		return nil, errPart
	}
	return b.done(), nil
}

// setBuilder makes a set of users that come in the order of their prints. It
// fills line by line: first come those who would be too far from home in the
// next one, then who is at home, then others.
//
// It is one goroutine's, and is used up by done. Between two calls of add all lines
// before home are full and never change again; own and others wait for lines from
// home on.
type setBuilder struct {
	s    *Set
	last uint64
	// home is the line that is being filled; own has what is kept of those who are at
	// home there, in order.
	home uint64
	own  []uint64
	// others are those who found no room at home, the longest away first.
	others []resident
	// before has what is kept of somebody of each of the last homes; 0 of nobody.
	before [maxAway]uint64
}

// newSetBuilder begins a set of n users.
func newSetBuilder(p *printer, n int64) *setBuilder {
	return &setBuilder{s: newSet(p, n)}
}

var errOrder = fmt.Errorf("%w: a list of users is not in order", dibs.ErrCorrupt)

// add takes the print of the next user.
// errOrder means that the parts of the list are damaged or were made with another
// seed: the list must be imported again.
func (b *setBuilder) add(mark uint64) error {
	if mark < b.last {
		return errOrder
	}
	b.last = mark
	home, kept := b.s.at(mark)
	for b.home < home {
		b.fill()
	}
	b.own = append(b.own, kept)
	b.s.n++
	return nil
}

// done returns the set.
func (b *setBuilder) done() *Set {
	for b.home < b.s.homes+maxAway {
		b.fill()
	}
	return b.s
}

// fill fills a line, and goes to the next one.
func (b *setBuilder) fill() {
	s := b.s
	l := s.line(b.home)
	taken := uint(0)
	// take has a print of some home in the next slot, if there is one.
	take := func(home, kept uint64) bool {
		if taken == s.slots {
			return false
		}
		s.write(l, taken, kept+b.home-home)
		taken++
		return true
	}
	late := 0
	for ; late < len(b.others) && b.others[late].home+maxAway == b.home; late++ {
		if o := b.others[late]; !take(o.home, o.kept) {
			if s.rest == nil {
				s.rest = make(map[resident]struct{})
			}
			s.rest[o] = struct{}{}
		}
	}
	b.others = b.others[late:]
	own := 0
	for own < len(b.own) && take(b.home, b.own[own]) {
		own++
	}
	early := 0
	for early < len(b.others) && take(b.others[early].home, b.others[early].kept) {
		early++
	}
	b.others = b.others[early:]
	if own < len(b.own) {
		// They come in order, so that these have the highest levels.
		l[lineWords-1] |= uint32(levels-s.level(b.own[own])) << (32 - gone)
	}
	for _, kept := range b.own[own:] {
		b.others = append(b.others, resident{b.home, kept})
	}
	b.close(l, taken)
	b.own = b.own[:0]
	b.home++
}

// close fills the slots of a line that nobody took with what is true anyway:
// whatever they had would be taken for a user.
func (b *setBuilder) close(l *line, taken uint) {
	v := b.s.slot(l, 0)
	if taken == 0 {
		// Where nobody is at home who could be so far away, nobody looks.
		v = b.before[0] + maxAway
	}
	for ; taken < b.s.slots; taken++ {
		b.s.write(l, taken, v)
	}
	copy(b.before[:], b.before[1:])
	b.before[maxAway-1] = 0
	if len(b.own) > 0 {
		b.before[maxAway-1] = b.own[0]
	}
}

// write writes into a slot of a line that nothing was written into.
func (s *Set) write(l *line, slot uint, v uint64) {
	l[slot] = uint32(v)
	at := s.slots*32 + slot*s.above
	two := v >> 32 << (at % 32)
	l[at/32] |= uint32(two)
	if two>>32 != 0 {
		l[at/32+1] |= uint32(two >> 32)
	}
}
