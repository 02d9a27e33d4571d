package audience

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// seedLen is the length of a list's seed.
const seedLen = 32

// printer makes prints of one list.
type printer struct {
	seed []byte
	mask uint64
	odd  uint64
}

func newPrinter(seed []byte) *printer {
	h := sha256.Sum256(append([]byte("dibs audience "), seed...))
	return &printer{seed: seed, mask: binary.LittleEndian.Uint64(h[:]), odd: binary.LittleEndian.Uint64(h[8:]) | 1}
}

const (
	// shortID is the longest id that is written as a number to the base of all
	// characters that ids have; longNumber the most digits of an id that is one.
	shortID    = 10
	longNumber = 18
	base       = 65
	// Prints of ids of each kind are in a range of their own, before they are mixed.
	numbersFrom = 1 << 61
	hashesFrom  = 1 << 62
)

// of returns a user's print, and whether it is his alone.
func (p *printer) of(user string) (print uint64, alone bool) {
	v, alone := exact(user)
	if !alone {
		var block [seedLen + 64]byte
		n := copy(block[:], p.seed)
		n += copy(block[n:], user)
		h := sha256.Sum256(block[:n])
		v = hashesFrom | binary.LittleEndian.Uint64(h[:])>>2
	}
	// Each step can be undone, so that different numbers stay different.
	v ^= p.mask
	v *= p.odd
	v ^= v >> 32
	v *= 0xd6e8feb86659fd93
	return v ^ v>>29, alone
}

// exact writes an id as a number below hashesFrom that no other id has; false
// for one that is too long for that.
func exact(user string) (uint64, bool) {
	if len(user) <= shortID {
		v := uint64(0)
		for i := range len(user) {
			v = v*base + uint64(digits[user[i]]) + 1
		}
		return v, true
	}
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

// placeBits is how many leading bits of its prints a set of n tells by their
// places.
func placeBits(n int64) int { return bits.Len64(uint64(n) / 16) }
