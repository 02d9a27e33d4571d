package limit

import "sync"

// table keeps the buckets of one kind of names, of all limits: a fixed number,
// whatever comes. Keys are hashes that nobody outside can compute, over the limit
// and the name: the last bits choose a set, and two names or two limits share a
// bucket only by an accident of 64 bits.
//
// locks[i] guards the sets whose number ends in i; the two slices themselves do not change.
// A key is in one bucket of its set at most.
type table struct {
	sets  []set
	locks []sync.Mutex
}

// ways is how many buckets a key may be in.
const ways = 8

// set is the buckets that some keys share: two cache lines.
type set struct {
	keys    [ways]uint64
	moments [ways]int64
}

// tableLocks is how many locks there are; each is held for some nanoseconds.
const tableLocks = 1 << 10

// newTable makes a table of at least n buckets, 16 bytes each.
func newTable(n int) *table {
	size := 1
	for size*ways < n {
		size *= 2
	}
	return &table{sets: make([]set, size), locks: make([]sync.Mutex, min(size, tableLocks))}
}

// with calls f with the moment of a key's bucket, and keeps what it returns. A
// key that is new gets the bucket whose moment is the earliest: one that has
// passed says nothing any more, and in a full set the user who is forgotten is
// the one who has the least to wait.
func (t *table) with(key uint64, f func(moment int64) int64) {
	if key == 0 {
		key = 1
	}
	i := key & uint64(len(t.sets)-1)
	lock := &t.locks[i&uint64(len(t.locks)-1)]
	lock.Lock()
	s := &t.sets[i]
	at := 0
	for w := range ways {
		if s.keys[w] == key {
			at = w
			break
		}
		if s.moments[w] < s.moments[at] {
			at = w
		}
	}
	if s.keys[at] != key {
		s.keys[at], s.moments[at] = key, 0
	}
	s.moments[at] = f(s.moments[at])
	lock.Unlock()
}
