package audience

import (
	"math/bits"

	"github.com/dibs-dev/dibs/internal/bigpages"
)

// Set is a set of users. It does not change, and is safe for concurrent use.
//
// A print tells by its first bits in which line of memory it is at home, so that
// one line is read to look for a user, as a processor reads memory. A print that finds
// no room at home is in one of the next lines, and the home knows of it.
//
// No print that was not added is ever found: what a slot keeps and its line together
// are the whole print.
type Set struct {
	p *printer
	n int64
	// homes is how many lines are somebody's home, in the order of the prints; home
	// says how many bits of a print that tells at least.
	homes uint64
	home  uint
	// lines has the lines, with maxAway behind them that are nobody's home.
	lines []uint32
	// A line has slots, each for 32 bits and then each for those above: what of a
	// print its home does not tell, and how many lines it is away from it.
	slots, above uint
	// rest has who found no room within maxAway lines.
	rest map[resident]struct{}
}

const (
	// A line has 512 bits. The last ones say how many of its levels are not at home
	// in it, the highest ones: those who are at home have levels by what is kept of
	// them.
	lineWords = 16
	slotBits  = 32*lineWords - gone
	gone      = 6
	levels    = 1<<gone - 1
	// maxAway is how many lines away from its home a print may be.
	maxAway  = 3
	awayBits = 2
	// mostHome is the most bits that a home tells: with one more there would be
	// twelve slots, and has looks at eleven.
	mostHome = 22
)

type line = [lineWords]uint32

// resident is a print: its home, and what is kept of it there.
type resident struct{ home, kept uint64 }

// newSet returns a set with room for n users.
func newSet(p *printer, n int64) *Set {
	s := &Set{p: p}
	s.size(n)
	s.lines = bigpages.Words(int(s.homes+maxAway) * lineWords)
	return s
}

// size says how a set of n users is laid out.
// Each bit that the home tells makes a slot narrower, so the loop takes the most that
// n users allow.
func (s *Set) size(n int64) {
	for s.home = mostHome; ; s.home-- {
		width := printBits - s.home + awayBits
		s.slots, s.above = slotBits/width, width-32
		// One slot in eight stays free, so that most users are at home.
		s.homes = max(2, (uint64(n)*8+uint64(7*s.slots)-1)/uint64(7*s.slots))
		if s.home == 1 || s.homes>>s.home > 0 {
			break
		}
	}
}

// Len is how many users there are.
func (s *Set) Len() int64 { return s.n }

// Bytes is how much memory the set takes.
func (s *Set) Bytes() int { return 4*len(s.lines) + 48*len(s.rest) }

// Has reports whether a user is in the set.
func (s *Set) Has(user string) bool { return s.has(s.p.of(user)) }

// Most users who are not in the set are refused by this line alone.
func (s *Set) has(mark uint64) bool {
	home, kept := s.at(mark)
	l, low := s.line(home), uint32(kept)
	// All slots are compared without a branch for each: one that hangs on what
	// memory says is guessed wrong for every other user.
	alike := same(l[0], low) | same(l[1], low)<<1 | same(l[2], low)<<2 | same(l[3], low)<<3 | same(l[4], low)<<4 | same(l[5], low)<<5 |
		same(l[6], low)<<6 | same(l[7], low)<<7 | same(l[8], low)<<8 | same(l[9], low)<<9 | same(l[10], low)<<10
	// Where there are fewer slots, what stands behind them is something else.
	alike &= 1<<(s.slots&63) - 1
	if alike == 0 {
		return s.away(l, kept) && s.holds(home, kept)
	}
	return s.slot(l, uint(bits.TrailingZeros64(alike))) == kept || s.holds(home, kept)
}

// same is 1 when both are, else 0.
func same(a, b uint32) uint64 { return (uint64(a^b) - 1) >> 63 }

// holds reports whether what is kept of a print with this home is there. It asks
// for all that may be.
func (s *Set) holds(home, kept uint64) bool {
	for far := range uint64(maxAway + 1) {
		l := s.line(home + far)
		for slot := range s.slots {
			if l[slot%lineWords] == uint32(kept+far) && s.slot(l, slot) == kept+far {
				return true
			}
		}
		if far == 0 && !s.away(l, kept) {
			return false
		}
	}
	_, is := s.rest[resident{home, kept}]
	return is
}

// at returns the home of a print, and what is kept of it there.
func (s *Set) at(mark uint64) (home, kept uint64) {
	// Of all prints there may be, the products of those with one home are s.homes
	// apart or more, and so differ in the bits that are kept.
	home, low := bits.Mul64(mark<<(64-printBits), s.homes)
	return home, low >> (64 - printBits) >> (s.home & 63) << awayBits
}

func (s *Set) line(i uint64) *line { return (*line)(s.lines[i*lineWords:]) }

// slot returns what a slot of a line has.
func (s *Set) slot(l *line, slot uint) uint64 {
	return s.slotAbove(l, slot)<<32 | uint64(l[slot%lineWords])
}

// slotAbove returns the bits above 32 of a slot.
func (s *Set) slotAbove(l *line, slot uint) uint64 {
	at := s.slots*32 + slot*s.above
	i := at / 32 % lineWords
	two := uint64(l[i]) | uint64(l[(i+1)%lineWords])<<32
	return two >> (at % 32) & (1<<(s.above&63) - 1)
}

// away reports whether what is kept of a print is of a level that is not at home.
func (s *Set) away(l *line, kept uint64) bool {
	return s.level(kept)+uint64(l[lineWords-1]>>(32-gone)) >= levels
}

// level is from 0 to levels-1.
func (s *Set) level(kept uint64) uint64 {
	return kept >> ((s.above + 16) & 63) * levels >> 16
}
