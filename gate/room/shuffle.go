package room

import (
	"math/rand/v2"
	"sync"
)

// shuffled knows the place of each number of one room. It is safe for concurrent
// use.
//
// mu guards seed and places, which belong together. They are made once for a start,
// and again only when Redis has lost the room and begun another.
type shuffled struct {
	mu     sync.Mutex
	seed   Sum
	places []uint32
}

// place is the place of a number: itself, but in a shuffled room for those who
// came before the start, for whom it is 0 until then.
func (s *shuffled) place(number int64, p *progress, shuffle bool) int64 {
	switch {
	case number <= 0:
		return 0
	case !shuffle || p.started() && number > p.early:
		return number
	case !p.started():
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seed != p.seed || int64(len(s.places)) != p.early {
		s.seed, s.places = p.seed, permutation(p.seed, p.early)
	}
	return int64(s.places[number-1])
}

// permutation gives each of n early arrivals, numbered from 1, a place from 1 to
// n: every order is as likely as any other, over seeds. It is the same on every
// node and in every release, since the order is Fisher and Yates' over the stream
// of ChaCha8, which is specified, and not one of the library's that may change.
func permutation(seed Sum, n int64) []uint32 {
	source := rand.NewChaCha8(seed)
	places := make([]uint32, n)
	for i := range places {
		places[i] = uint32(i) + 1
	}
	for i := n - 1; i > 0; i-- {
		j := below(source, uint64(i)+1)
		places[i], places[j] = places[j], places[i]
	}
	return places
}

// below returns a number from 0 to n-1, each as likely as any other: numbers
// beyond the last whole multiple of n are drawn again.
func below(source *rand.ChaCha8, n uint64) uint64 {
	for most := -n % n; ; {
		if v := source.Uint64(); v >= most {
			return v % n
		}
	}
}
