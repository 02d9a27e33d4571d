package redisengine

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// maxHolders is the most users that a process remembers of a shard. Where
	// there are more, every user who sends a key is asked for in Redis.
	maxHolders = 1 << 21
	// holderBits is the bits for each user, and holderProbes how many of them a user
	// sets: about one of a hundred others is taken for a holder.
	holderBits, holderProbes = 12, 6
	// scanCount is about how many buckets one call reads.
	scanCount = 500
)

// holders lists the users who have ever held a claim on the shard: all of them, and
// by chance a few others (a Bloom filter).
//
// One goroutine adds, its follower; any number read meanwhile, by atomic words. room,
// users and at are the follower's alone.
type holders struct {
	seed maphash.Seed
	bits []atomic.Uint64
	// room is for how many users it is made, of which users were added.
	room, users int64
	// at is the place up to which every grant's user is in it.
	at dibs.Cursor
}

func newHolders(room int64) *holders {
	room = max(2*room, 1024)
	return &holders{seed: maphash.MakeSeed(), bits: make([]atomic.Uint64, (room*holderBits+63)/64), room: room}
}

// probe is the number of one of a user's bits.
func (h *holders) probe(hash uint64, i uint64) uint64 {
	low, high := hash&0xffffffff, hash>>32|1
	return (low + i*high) % uint64(len(h.bits)*64)
}

func (h *holders) add(user string) {
	hash := maphash.String(h.seed, user)
	for i := range uint64(holderProbes) {
		bit := h.probe(hash, i)
		h.bits[bit/64].Or(1 << (bit % 64))
	}
	h.users++
}

// may reports whether a user may be a holder; false is for sure.
func (h *holders) may(user string) bool {
	hash := maphash.String(h.seed, user)
	for i := range uint64(holderProbes) {
		bit := h.probe(hash, i)
		if h.bits[bit/64].Load()&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

// full reports that too many others would be taken for holders.
func (h *holders) full() bool { return h.users > h.room }

// readHolders reads the users of all buckets. Those that are there from its
// beginning to its end are in it, so that the place is that of its beginning.
func (s *shard) readHolders(ctx context.Context, at dibs.Cursor, room int64) (*holders, error) {
	h := newHolders(room)
	h.at = at
	for cursor := "0"; ; {
		r, err := s.p.redis.Call(ctx, "HSCAN", s.keys.Holdings, cursor, "COUNT", format.Itoa(scanCount))
		if err != nil {
			return nil, err
		}
		if len(r.List) != 2 {
			return nil, conn.ErrShape
		}
		for i := 1; i < len(r.List[1].List); i += 2 {
			if err := h.addBucket(r.List[1].List[i].Text); err != nil {
				return nil, fmt.Errorf("redisengine: the holdings of shard %s: %w", s.id, err)
			}
		}
		if cursor = r.List[0].Text; cursor == "0" {
			return h, nil
		}
	}
}

// addBucket adds the users of a bucket.
func (h *holders) addBucket(bucket string) error {
	for bucket != "" {
		user, rest, err := format.CutHolder(bucket)
		if err != nil {
			return err
		}
		h.add(user)
		bucket = rest
	}
	return nil
}

// addJournal adds the users of the entries up to a place; false when the
// journal does not have all of them any more.
func (s *shard) addJournal(ctx context.Context, h *holders, upTo dibs.Cursor) (bool, error) {
	for h.at.Before(upTo) {
		entries, err := s.readJournal(ctx, h.at, format.MaxBatch)
		if err != nil {
			return false, err
		}
		if len(entries) == 0 {
			return false, nil
		}
		for i := range entries {
			if !dibs.Continues(h.at, &entries[i]) {
				return false, nil
			}
			if entries[i].Kind == dibs.EntryGrant {
				h.add(entries[i].UserID)
			}
			h.at = entries[i].Cursor
		}
	}
	return true, nil
}
