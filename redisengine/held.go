package redisengine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dibs-dev/dibs"
)

// held is what a shard's users hold, while it is being opened.
type held struct {
	claims  []dibs.Holding
	granted int64
	refs    map[string]struct{}
	// taken are the items that the journal's tail granted or withdrew.
	taken map[uint32]bool
}

func newHeld(load *dibs.ShardLoad) *held {
	h := &held{claims: slices.Clone(load.Holdings), refs: make(map[string]struct{}), taken: make(map[uint32]bool)}
	for i := range h.claims {
		if !h.claims[i].Released {
			h.granted += h.claims[i].Quantity
		}
	}
	for _, ref := range load.Refs {
		h.refs[ref] = struct{}{}
	}
	return h
}

// redo applies one entry of the tail and returns by how much it changes what
// is left. What the ledger moves before the engine (releases, restocks) is in
// the load already.
func (h *held) redo(en *dibs.Entry) int64 {
	var change int64
	switch en.Kind {
	case dibs.EntryGrant:
		h.claims = append(h.claims, dibs.Holding{
			Cursor: en.Cursor, UserID: en.UserID, Key: en.Key, Quantity: en.Quantity, At: en.At, Items: en.Items,
		})
		h.granted += en.Quantity
		change = -en.Quantity
	case dibs.EntryAdjust:
		h.refs[en.Ref] = struct{}{}
		if en.Quantity > 0 {
			return 0
		}
		change = en.Quantity
	default:
		return 0
	}
	for _, n := range en.Items {
		h.taken[n] = true
	}
	return change
}

// freeOf returns the load's free items without those that the tail took.
func (h *held) freeOf(load *dibs.ShardLoad) []uint32 {
	free := make([]uint32, 0, len(load.FreeItems))
	for _, n := range load.FreeItems {
		if !h.taken[n] {
			free = append(free, n)
		}
	}
	return free
}

func (h *held) refNames() []string { return slices.Collect(maps.Keys(h.refs)) }

// chunk and slotSize are CHUNK and SLOT of lua/shard.lua: the places of one
// field of the index, and the bytes of each.
const (
	chunk    = 64
	slotSize = 4
)

// packed writes the claims as fields and values of the holdings' hash and of
// the index of places.
func (h *held) packed(buckets int64) (holdings, places []string, err error) {
	records := make(map[string][]byte)
	inBucket := make(map[uint32][]string)
	chunks := make(map[string][]byte)
	for i := range h.claims {
		c := &h.claims[i]
		if len(c.UserID) > maxUserLen || c.Quantity < 1 || c.Quantity > math.MaxUint32 {
			return nil, nil, fmt.Errorf("claim %s of %q for %d: %w", c.Cursor, c.UserID, c.Quantity, dibs.ErrCorrupt)
		}
		number := bucketOf(c.UserID, buckets)
		before, known := records[c.UserID]
		if !known {
			inBucket[number] = append(inBucket[number], c.UserID)
		}
		records[c.UserID] = appendRecord(before, c)
		field := fmt.Sprintf("%d:%d", c.Epoch, c.Seq/chunk)
		end := int(c.Seq%chunk+1) * slotSize
		slots := chunks[field]
		slots = append(slots, make([]byte, max(end-len(slots), 0))...)
		binary.BigEndian.PutUint32(slots[end-slotSize:], number)
		chunks[field] = slots
	}
	for number, names := range inBucket {
		var b []byte
		for _, name := range names {
			b = appendHolder(b, name, records[name])
		}
		holdings = append(holdings, string(binary.BigEndian.AppendUint32(nil, number)), string(b))
	}
	for field, slots := range chunks {
		places = append(places, field, string(slots))
	}
	return holdings, places, nil
}

// issued writes the items of claims as fields and values of their hash.
func (h *held) issued(values []string) ([]string, error) {
	var all []string
	for i := range h.claims {
		elements, err := itemsOf(h.claims[i].Items, values)
		if err != nil {
			return nil, err
		}
		var run []byte
		for _, element := range elements {
			run = append(run, element...)
		}
		all = append(all, string(appendPlace(nil, h.claims[i].Cursor)), string(run))
	}
	return all, nil
}

// itemsOf writes items as elements of the free list.
func itemsOf(numbers []uint32, values []string) ([]string, error) {
	elements := make([]string, len(numbers))
	for i, n := range numbers {
		if int(n) >= len(values) || len(values[n]) > math.MaxUint16 {
			return nil, fmt.Errorf("item %d of %d: %w", n, len(values), dibs.ErrCorrupt)
		}
		elements[i] = string(appendItem(nil, n, values[n]))
	}
	return elements, nil
}
