package redpacket

import (
	"math/bits"
	"math/rand/v2"
)

// source yields random numbers from ChaCha8 without an interface in between:
// a million shares ask for many.
type source struct{ *rand.ChaCha8 }

// below returns a number from 0 to n-1, each as likely as any other: Lemire's
// multiplication, with the rare values drawn again that would favour some.
func (s source) below(n int64) int64 {
	high, low := bits.Mul64(s.Uint64(), uint64(n))
	if low < uint64(n) {
		for uneven := -uint64(n) % uint64(n); low < uneven; {
			high, low = bits.Mul64(s.Uint64(), uint64(n))
		}
	}
	return int64(high)
}

// shuffle puts shares into one of all orders, each as likely as any other.
func (s source) shuffle(shares []int64) {
	for i := len(shares) - 1; i > 0; i-- {
		j := s.below(int64(i + 1))
		shares[i], shares[j] = shares[j], shares[i]
	}
}
