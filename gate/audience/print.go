package audience

import (
	"math/bits"
	"math/rand/v2"

	"github.com/dibs-dev/dibs"
)

// seedLen is the length of a list's seed.
const seedLen = 32

// printer makes prints of one list.
// It does not change, so goroutines share it.
type printer struct {
	mask, odd uint64
	// The keys of the hash: of the length, and of each eight characters.
	length key
	word   [dibs.MaxIDLen / 8]key
}

// newPrinter returns the printer of a seed, which nobody else may know.
// The same seed gives the same prints, on every node and in every release.
func newPrinter(seed [seedLen]byte) *printer {
	random := rand.NewChaCha8(seed)
	p := &printer{mask: random.Uint64(), odd: random.Uint64() | 1}
	next := func() key { return key{random.Uint64(), random.Uint64()} }
	p.length = next()
	for i := range p.word {
		p.word[i] = next()
	}
	return p
}

const (
	// printBits is how many bits a print has.
	printBits = 63
	printMask = 1<<printBits - 1
	// shortID is the longest id that is written as a number to the base of all
	// characters that ids have; longNumber the most digits of an id that is one.
	shortID    = 10
	longNumber = 18
	base       = 65
	// Prints of ids of each kind are in a range of their own, before they are mixed:
	// there are fewer than numbersFrom short ids, and fewer than hashesFrom with the
	// numbers.
	numbersFrom = 11 << 57
	hashesFrom  = 9 << 58
)

// of returns a user's print. No two ids have one print of which either is short
// or a number. Two others have the same print with a chance of one in
// 6,600,000,000,000,000,000, also when somebody chose them without knowing the seed.
func (p *printer) of(user string) uint64 {
	v, exact := exactly(user)
	if !exact {
		v, _ = bits.Mul64(p.hash(user), 1<<printBits-hashesFrom)
		v += hashesFrom
	}
	// Each step can be undone, so that different numbers stay different.
	v = (v ^ p.mask) & printMask
	v = v * p.odd & printMask
	v ^= v >> 32
	v = v * 0xd6e8feb86659fd93 & printMask
	return v ^ v>>29
}

// hash is the upper half of the sum of the words of a long id, and of its
// length, each times its key. That two ids have the same is one in 2^64, which is
// proven and no matter of how well something is mixed: M. Thorup, High Speed
// Hashing for Integers and Strings, section 3.4, after M. Dietzfelbinger.
func (p *printer) hash(id string) uint64 {
	high, low := p.length.times(uint64(len(id)))
	var h, l, carry uint64
	last := len(id) - 8
	for i := 0; i < len(p.word)-1 && 8*i < last; i++ {
		h, l = p.word[i].times(wordAt(id, 8*i))
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	// The last one begins in the one before: that is why the length counts.
	h, l = p.word[len(p.word)-1].times(wordAt(id, last))
	_, carry = bits.Add64(low, l, 0)
	return high + h + carry
}

// key has 128 bits.
type key struct{ high, low uint64 }

// times returns the product of a word and a key, without what is above 128 bits.
func (k *key) times(word uint64) (high, low uint64) {
	high, low = bits.Mul64(word, k.low)
	return high + word*k.high, low
}

// wordAt returns eight characters as a number.
func wordAt(id string, i int) uint64 {
	b := id[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// exactly writes an id as a number below hashesFrom that no other id has; false
// for one that is too long for that.
func exactly(user string) (uint64, bool) {
	if len(user) <= shortID {
		v := uint64(0)
		if len(user)%2 != 0 {
			v, user = uint64(digits[user[0]])+1, user[1:]
		}
		for len(user) >= 2 {
			// Two at a time, since each step waits for the one before.
			v = v*(base*base) + (uint64(digits[user[0]])*base + uint64(digits[user[1]]) + base + 1)
			user = user[2:]
		}
		return v, true
	}
	// A leading zero would be lost in the number, and two ids would share a print.
	if len(user) > longNumber || user[0] == '0' {
		return 0, false
	}
	v := uint64(0)
	for i := range len(user) {
		d := user[i] - '0'
		if d > 9 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	return numbersFrom + v, true
}

// digits are the characters of ids as digits.
var digits = func() (d [256]uint8) {
	n := uint8(0)
	for _, r := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") {
		d[r] = n
		n++
	}
	return d
}()
