package redisengine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// openLoad sums up a shard while it is being opened: what the ledger has of it, and
// then each entry of the journal's tail. One goroutine uses it.
type openLoad struct {
	claims  []dibs.Holding
	granted int64
	// moved is dibs.ShardStats.Moved.
	moved int64
	refs  map[string]struct{}
	// taken are the items that the journal's tail granted or withdrew.
	taken map[uint32]bool
}

func newOpenLoad(load *dibs.ShardLoad) *openLoad {
	h := &openLoad{claims: slices.Clone(load.Holdings), moved: load.Moved, refs: make(map[string]struct{}), taken: make(map[uint32]bool)}
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
// is left. Moves that the ledger makes before the engine (releases, restocks), and
// withdrawals that it settled ahead, are in the load already.
func (h *openLoad) redo(en *dibs.Entry) int64 {
	var change int64
	switch en.Kind {
	case dibs.EntryGrant:
		h.claims = append(h.claims, dibs.Holding{
			Cursor: en.Cursor, UserID: en.UserID, Key: en.Key, Quantity: en.Quantity, At: en.At, Items: en.Items,
		})
		h.granted += en.Quantity
		change = -en.Quantity
	case dibs.EntryAdjust:
		if en.Quantity > 0 {
			// The ledger has counted it. One that was restored from before has it sent
			// again, under the same name.
			return 0
		}
		if _, settled := h.refs[en.Ref]; settled {
			return 0
		}
		h.refs[en.Ref] = struct{}{}
		change = en.Quantity
		if _, ok := dibs.TransferOf(en.Ref); ok {
			h.moved -= en.Quantity
		}
	default:
		return 0
	}
	for _, n := range en.Items {
		h.taken[n] = true
	}
	return change
}

func (h *openLoad) refNames() []string { return slices.Collect(maps.Keys(h.refs)) }

// chunk is CHUNK of lua/shard.lua: the places of one field of the index.
const chunk = 120

// packed writes the claims as fields and values of the holdings' hash and of
// the index of places.
func (h *openLoad) packed(buckets int64) (holdings, places []string, err error) {
	slices.SortStableFunc(h.claims, func(a, b dibs.Holding) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
	})
	records := make(map[string][]byte, len(h.claims))
	inBucket := make(map[uint32][]string)
	index := make(map[string]*runs)
	for i := range h.claims {
		c := &h.claims[i]
		if !format.Holdable(c.UserID, c.Quantity) || c.Epoch > dibs.MaxEpoch {
			return nil, nil, fmt.Errorf("claim %s of %q for %d: %w", c.Cursor, c.UserID, c.Quantity, dibs.ErrCorrupt)
		}
		number := format.BucketOf(c.UserID, buckets)
		before, known := records[c.UserID]
		if !known {
			inBucket[number] = append(inBucket[number], c.UserID)
		}
		records[c.UserID] = format.AppendRecord(before, c)
		at := string(format.AppendPlace(nil, dibs.Cursor{Epoch: c.Epoch, Seq: c.Seq / chunk}))
		if index[at] == nil {
			index[at] = new(runs)
		}
		index[at].add(c, number)
	}
	for number, names := range inBucket {
		var b []byte
		for _, name := range names {
			b = format.AppendHolder(b, name, records[name])
		}
		holdings = append(holdings, string(binary.BigEndian.AppendUint32(nil, number)), string(b))
	}
	for at, runs := range index {
		places = append(places, at, string(runs.buf))
	}
	return holdings, places, nil
}

// runs is one field of the index of places while it is being written: see
// slot_of in lua/shard.lua.
type runs struct {
	buf []byte
	// count is where the last run has its count, at its time, next the place
	// that would go on with it.
	count int
	at    int64
	next  uint32
}

// add adds the next claim. Those of one time that follow each other are a run.
func (r *runs) add(c *dibs.Holding, bucket uint32) {
	if r.buf == nil || c.At != r.at || c.Seq != r.next {
		r.buf = append(format.AppendMS(r.buf, c.At), byte(c.Seq%chunk), 0)
		r.count, r.at = len(r.buf)-1, c.At
	}
	r.buf = binary.BigEndian.AppendUint32(r.buf, bucket)
	r.buf[r.count]++
	r.next = c.Seq + 1
}

// issued writes the items of claims as fields and values of their hash.
func (h *openLoad) issued(values []string) ([]string, error) {
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
		all = append(all, string(format.AppendPlace(nil, h.claims[i].Cursor)), string(run))
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
		elements[i] = string(format.AppendItem(nil, n, values[n]))
	}
	return elements, nil
}
