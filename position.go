package dibs

import (
	"encoding/binary"
	"fmt"
)

// The widths of a position's parts, in bits. Together they are the 80 bits
// that a claim's id shows under a keyed permutation.
const (
	campaignBits = 28
	shardBits    = 8
	epochBits    = 12
	seqBits      = 32

	// MaxCampaignNumber, MaxShards and MaxEpoch are the largest values.
	MaxCampaignNumber = 1<<campaignBits - 1
	MaxShards         = 1 << shardBits
	MaxEpoch          = 1<<epochBits - 1
)

// ShardID names one shard of one campaign. It is comparable.
type ShardID struct {
	// Campaign is the campaign's number in the ledger, from 1.
	Campaign uint32
	Shard    uint8
}

// String shows campaign/shard.
func (s ShardID) String() string { return fmt.Sprintf("%d/%d", s.Campaign, s.Shard) }

// Cursor is a place in one shard's journal. The zero value is before the
// first entry.
type Cursor struct {
	// Epoch rises whenever the engine's history of the shard may have changed.
	Epoch uint16
	// Seq counts the shard's journal entries within the epoch, from 1.
	Seq uint32
}

// Before reports whether c lies before d.
func (c Cursor) Before(d Cursor) bool {
	return c.Epoch < d.Epoch || c.Epoch == d.Epoch && c.Seq < d.Seq
}

// String shows epoch.seq.
func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Epoch, c.Seq) }

// Position is where a grant stands: its shard and its place in the shard's
// journal. It is the claim's identity. It is comparable.
type Position struct {
	ShardID
	Cursor
}

// String shows campaign/shard@epoch.seq.
func (p Position) String() string { return p.ShardID.String() + "@" + p.Cursor.String() }

// pack writes the 80 bits, most significant first.
func (p Position) pack() [10]byte {
	var b [10]byte
	hi := uint64(p.Campaign)<<(shardBits+epochBits) | uint64(p.Shard)<<epochBits | uint64(p.Epoch)
	// hi holds 48 bits, seq the last 32.
	binary.BigEndian.PutUint16(b[0:2], uint16(hi>>32))
	binary.BigEndian.PutUint32(b[2:6], uint32(hi))
	binary.BigEndian.PutUint32(b[6:10], p.Seq)
	return b
}

// unpackPosition reads what pack wrote.
func unpackPosition(b [10]byte) Position {
	hi := uint64(binary.BigEndian.Uint16(b[0:2]))<<32 | uint64(binary.BigEndian.Uint32(b[2:6]))
	return Position{
		ShardID: ShardID{Campaign: uint32(hi >> (shardBits + epochBits)), Shard: uint8(hi >> epochBits)},
		Cursor:  Cursor{Epoch: uint16(hi) & MaxEpoch, Seq: binary.BigEndian.Uint32(b[6:10])},
	}
}
