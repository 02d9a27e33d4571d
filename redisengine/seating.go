package redisengine

import "sync"

// seating finds the claims of a batch that share a bucket: a table that is not
// cleared but begins a new round, four times as large as a batch.
type seating struct {
	round uint32
	seats [4 * maxBatch]seat
}

// seat has the first claim of a bucket, counted from 1, in one round.
type seat struct {
	round, bucket uint32
	first         uint16
}

var seatings = sync.Pool{New: func() any { return new(seating) }}

// begin begins a round.
func (s *seating) begin() {
	if s.round++; s.round == 0 {
		*s = seating{round: 1}
	}
}

// first returns the first claim of a bucket; 0 when that is the one that asks,
// and none before it. A round has maxBatch claims at most.
func (s *seating) first(bucket uint32, claim uint16) uint16 {
	// The upper bits of the product spread numbers that stand close together.
	for at := int(bucket * 2654435761 >> 20); ; at++ {
		free := &s.seats[at%len(s.seats)]
		if free.round != s.round {
			*free = seat{round: s.round, bucket: bucket, first: claim}
			return 0
		}
		if free.bucket == bucket {
			return free.first
		}
	}
}
