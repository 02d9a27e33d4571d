package redisengine

import (
	"sync"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// duplicateIndex finds the claims of a batch that share a bucket: a table that is not
// cleared but begins a new round, four times as large as a batch.
type duplicateIndex struct {
	round uint32
	slots [4 * format.MaxBatch]duplicateSlot
}

// duplicateSlot has the first claim of a bucket, counted from 1, in one round.
type duplicateSlot struct {
	round, bucket uint32
	first         uint16
}

// duplicateIndexes are kept from batch to batch: one is 64 kB.
var duplicateIndexes = sync.Pool{New: func() any { return new(duplicateIndex) }}

// begin begins a round.
func (d *duplicateIndex) begin() {
	if d.round++; d.round == 0 {
		*d = duplicateIndex{round: 1}
	}
}

// first returns the first claim of a bucket; 0 when that is the one that asks,
// and none before it. A round has MaxBatch claims at most.
func (d *duplicateIndex) first(bucket uint32, claim uint16) uint16 {
	// The upper bits of the product spread numbers that stand close together.
	for at := int(bucket * 2654435761 >> 20); ; at++ {
		free := &d.slots[at%len(d.slots)]
		if free.round != d.round {
			*free = duplicateSlot{round: d.round, bucket: bucket, first: claim}
			return 0
		}
		if free.bucket == bucket {
			return free.first
		}
	}
}
