package memengine

import (
	"sort"

	"github.com/dibs-dev/dibs"
)

// record is one granted claim. It holds no pointer, so that the garbage
// collector does not walk millions of them.
type record struct {
	key      uint64 // hash of the request's key, 0 for none
	at       int64  // ms since 1970
	user     uint64 // place of the user's id in the arena
	prev     uint32 // 1 + index of the next older record of the same hash, 0 for none
	seq      uint32
	quantity uint32
	held     uint32 // units the user holds; kept in the user's newest record only
	epoch    uint16
	claims   uint16 // the user's claims with this one, at most dibs.MaxClaimsPerUser
	released bool
}

// Chunks of 4,096 records and of 64 KiB: a small campaign wastes little, and a great
// one seldom allocates.
const (
	chunkBits = 12
	chunkSize = 1 << chunkBits
	arenaBits = 16
	arenaSize = 1 << arenaBits
)

// holders is the table of a shard's claims: by user, and by place. Records
// are appended in the order of places and popped only by undo. Chunks are
// never moved, so growing copies nothing.
//
// It has no lock: the shard's mutex guards it. Records stand in ascending order of
// places, which seek relies on. The newest record of a user has their sums in held
// and claims; older ones have those of their own time, so pop needs to restore
// nothing.
type holders struct {
	newest map[uint64]uint32 // hash of the user -> 1 + index of the newest record
	chunks []*[chunkSize]record
	n      uint32
	arena  []*[arenaSize]byte
	used   int // bytes used of the last arena chunk
	// Items, for stock that has them: itemAt[i] is where record i's item
	// numbers begin in itemNumbers.
	itemAt      []uint32
	itemNumbers []uint32
}

func newHolders(sizeHint int) *holders {
	return &holders{newest: make(map[uint64]uint32, sizeHint), used: arenaSize}
}

func (h *holders) at(i uint32) *record { return &h.chunks[i>>chunkBits][i&(chunkSize-1)] }

// find returns 1 + the index of the user's newest record; 0 for none.
// Users whose hashes are equal share a chain, so the id is compared.
func (h *holders) find(hash uint64, user string) uint32 {
	for i := h.newest[hash]; i != 0; i = h.at(i - 1).prev {
		if h.userIs(h.at(i-1).user, user) {
			return i
		}
	}
	return 0
}

// next returns 1 + the index of the next older record of the same user.
func (h *holders) next(i uint32) uint32 {
	r := h.at(i - 1)
	for j := r.prev; j != 0; j = h.at(j - 1).prev {
		if h.at(j-1).user == r.user {
			return j
		}
	}
	return 0
}

// add appends a record. newest is what find returned for the user.
func (h *holders) add(hash uint64, user string, newest uint32, r record) {
	if newest != 0 {
		old := h.at(newest - 1)
		r.user, r.held = old.user, old.held+r.held
		r.claims = min(old.claims, dibs.MaxClaimsPerUser-1) + 1
	} else {
		r.user, r.claims = h.keepUser(user), 1
	}
	r.prev = h.newest[hash]
	if h.n&(chunkSize-1) == 0 && int(h.n>>chunkBits) == len(h.chunks) {
		h.chunks = append(h.chunks, new([chunkSize]record))
	}
	*h.at(h.n) = r
	h.n++
	h.newest[hash] = h.n
}

// pop takes the last record off: hash must be its user's.
// The user's id stays in the arena: only the map leads to it.
func (h *holders) pop(hash uint64) record {
	r := *h.at(h.n - 1)
	if r.prev == 0 {
		delete(h.newest, hash)
	} else {
		h.newest[hash] = r.prev
	}
	h.n--
	return r
}

// seek returns the index of the record at a place.
func (h *holders) seek(c dibs.Cursor) (uint32, bool) {
	i := uint32(sort.Search(int(h.n), func(i int) bool {
		r := h.at(uint32(i))
		return !dibs.Cursor{Epoch: r.epoch, Seq: r.seq}.Before(c)
	}))
	if i == h.n {
		return 0, false
	}
	r := h.at(i)
	return i, r.epoch == c.Epoch && r.seq == c.Seq
}

// keepUser stores a user's id, of at most 255 bytes, and returns its place.
// An id never crosses two chunks, and none is ever moved, so its place stays valid.
func (h *holders) keepUser(user string) uint64 {
	if h.used+1+len(user) > arenaSize {
		h.arena = append(h.arena, new([arenaSize]byte))
		h.used = 0
	}
	last := len(h.arena) - 1
	place := uint64(last)<<arenaBits | uint64(h.used)
	h.arena[last][h.used] = byte(len(user))
	copy(h.arena[last][h.used+1:], user)
	h.used += 1 + len(user)
	return place
}

func (h *holders) userBytes(place uint64) []byte {
	chunk, at := h.arena[place>>arenaBits], int(place&(arenaSize-1))
	return chunk[at+1 : at+1+int(chunk[at])]
}

func (h *holders) userIs(place uint64, user string) bool { return string(h.userBytes(place)) == user }

// items returns the item numbers of record i: as many as its quantity, but of
// one that the ledger could not settle, those that there are.
func (h *holders) items(i uint32) []uint32 {
	if h.itemAt == nil {
		return nil
	}
	end := uint32(len(h.itemNumbers))
	if i+1 < h.n {
		end = h.itemAt[i+1]
	}
	return h.itemNumbers[h.itemAt[i]:end]
}

// keepItems stores the item numbers of the record that is added next.
func (h *holders) keepItems(numbers []uint32) {
	h.itemAt = append(h.itemAt[:h.n], uint32(len(h.itemNumbers)))
	h.itemNumbers = append(h.itemNumbers, numbers...)
}
