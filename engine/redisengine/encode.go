package redisengine

import (
	"encoding/binary"
	"math"

	"github.com/dibs-dev/dibs"
	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// encodable refuses what the domain never lets through.
func encodable(req *dibs.EngineClaim) error {
	if !format.Holdable(req.UserID, req.Quantity) || len(req.Reference) > format.MaxReference {
		return dibs.Invalid(dibs.Fault{Field: "/quantity", Problem: dibs.Textf(
			"must be from 1 to %d, for a user of 1 to %d bytes", "必须在 1 到 %d 之间，用户 ID 为 1 到 %d 字节", int64(math.MaxUint32), format.MaxUserLen)})
	}
	return nil
}

const (
	// lateMark is LATE of lua/claim.lua: what is added to the quantity of a claim that
	// is decided whatever the window and the state are.
	lateMark = 1 << 40
	// knownMark is KNOWN: what is added to that of a claim that is decided only for a
	// user who has one.
	knownMark = 1 << 41
)

// encode writes the claims as msgpack arrays: their buckets, how their records
// begin, their quantities, which are left out when all are plain claims of one
// unit, and which of them share a bucket with an earlier one, left out when none
// does: the script would need a table of all buckets to see that for itself. The
// references of those that have one stand behind, in the form of the journal.
func (b *batch) encode(buckets int64) []string {
	for i := range 4 {
		b.bufs[i] = format.AppendArray(b.bufs[i][:0], len(b.waiters))
	}
	fields, begins, quantities, sharing, references := b.bufs[0], b.bufs[1], b.bufs[2], b.bufs[3], b.bufs[4][:0]
	earlier := duplicateIndexes.Get().(*duplicateIndex)
	defer duplicateIndexes.Put(earlier)
	earlier.begin()
	plain, shared := true, 0
	for i, t := range b.waiters {
		bucket := format.BucketOf(t.req.UserID, buckets)
		fields = binary.BigEndian.AppendUint32(append(fields, 0xa0|4), bucket)
		if first := earlier.first(bucket, uint16(i+1)); first > 0 {
			shared++
			sharing = format.AppendUint16(format.AppendUint16(sharing, uint16(i+1)), first)
		}
		begins = format.AppendBegin(begins, t.req.UserID, t.req.Key)
		quantity := markedQuantity(&t.req)
		quantities = binary.BigEndian.AppendUint64(append(quantities, 0xd3), uint64(quantity))
		plain = plain && quantity == 1
		if t.req.Reference != "" {
			references = format.AppendReference(references, uint16(i+1), t.req.Reference)
		}
	}
	binary.BigEndian.PutUint16(sharing[1:], uint16(2*shared))
	b.bufs = [5][]byte{fields, begins, quantities, sharing, references}
	args := []string{rueidis.BinaryString(fields), rueidis.BinaryString(begins), "", "", rueidis.BinaryString(references)}
	if !plain {
		args[2] = rueidis.BinaryString(quantities)
	}
	if shared > 0 {
		args[3] = rueidis.BinaryString(sharing)
	}
	return args
}

// markedQuantity is a claim's quantity with what the script has to know of it.
func markedQuantity(req *dibs.EngineClaim) int64 {
	quantity := req.Quantity
	if req.Late {
		quantity += lateMark
	}
	if req.OnlyKnown {
		quantity += knownMark
	}
	if req.OnlyRepeat {
		quantity = -quantity
	}
	return quantity
}
