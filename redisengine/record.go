package redisengine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dibs-dev/dibs"
)

// A record of a bucket is one claim: time (6 bytes), epoch with the mark of a
// release (2), seq (4), key (8), quantity (4), most significant first.
// lua/shard.lua has the same numbers.
const (
	recordSize   = 24
	placeSize    = 6
	releasedMark = 1 << 15
	placeAt      = 6
	quantityAt   = 20
)

// mostShort is the most records whose count takes one byte.
const mostShort = math.MaxUint8

// appendHolder writes a user and his records as a bucket has them: the name,
// the count of the records, and they. The count is one byte, and where that
// does not do, a zero and four bytes.
func appendHolder(buf []byte, user string, records []byte) []byte {
	buf = appendUser(buf, user)
	if n := len(records) / recordSize; n <= mostShort {
		buf = append(buf, byte(n))
	} else {
		buf = binary.BigEndian.AppendUint32(append(buf, 0), uint32(n))
	}
	return append(buf, records...)
}

// cutHolder takes the first user off a bucket that is not empty.
func cutHolder(bucket string) (user, rest string, err error) {
	at := 1 + int(bucket[0])
	if len(bucket) <= at {
		return "", "", dibs.ErrCorrupt
	}
	user = bucket[1:at]
	count := int64(bucket[at])
	if at++; count == 0 {
		if len(bucket) < at+4 {
			return "", "", dibs.ErrCorrupt
		}
		count = int64(binary.BigEndian.Uint32([]byte(bucket[at : at+4])))
		at += 4
	}
	if int64(len(bucket)-at) < count*recordSize {
		return "", "", dibs.ErrCorrupt
	}
	return user, bucket[at+int(count)*recordSize:], nil
}

// appendPlace writes a place as records and the index of items have it.
func appendPlace(buf []byte, c dibs.Cursor) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(buf, c.Epoch), c.Seq)
}

func placeOf(s string) (c dibs.Cursor, released bool) {
	epoch := uint16(s[0])<<8 | uint16(s[1])
	return dibs.Cursor{Epoch: epoch &^ releasedMark, Seq: binary.BigEndian.Uint32([]byte(s[2:6]))}, epoch&releasedMark != 0
}

// appendMS writes a time in 6 bytes.
func appendMS(buf []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(buf, uint16(ms>>32)), uint32(ms))
}

func msOf(s string) int64 {
	return int64(binary.BigEndian.Uint16([]byte(s[:2])))<<32 | int64(binary.BigEndian.Uint32([]byte(s[2:6])))
}

// appendRecord writes a claim.
func appendRecord(buf []byte, h *dibs.Holding) []byte {
	place := h.Cursor
	if h.Released {
		place.Epoch |= releasedMark
	}
	buf = appendPlace(appendMS(buf, h.At), place)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(buf, h.Key), uint32(h.Quantity))
}

// grantOf reads a record of recordSize bytes, and its items.
func grantOf(id dibs.ShardID, user, record, items string, payInMS int64) (g dibs.Grant, err error) {
	g.ShardID = id
	g.Cursor, g.Released = placeOf(record[placeAt:])
	g.UserID, g.At = user, msOf(record)
	g.Quantity = int64(binary.BigEndian.Uint32([]byte(record[quantityAt:])))
	if payInMS > 0 {
		g.PayBy = g.At + payInMS
	}
	g.Items, err = itemValues(items)
	return g, err
}

// heldOf reads a run of places.
func heldOf(id dibs.ShardID, places string) ([]dibs.Position, error) {
	if len(places)%placeSize != 0 {
		return nil, errShape
	}
	var held []dibs.Position
	for ; places != ""; places = places[placeSize:] {
		c, _ := placeOf(places)
		held = append(held, dibs.Position{ShardID: id, Cursor: c})
	}
	return held, nil
}

// appendItem writes an item as the free list and claims have it: number (4
// bytes), length (2), value.
func appendItem(buf []byte, number uint32, value string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, number)
	return append(binary.BigEndian.AppendUint16(buf, uint16(len(value))), value...)
}

// itemValues reads the values of a run of items; nil when it is empty.
func itemValues(run string) ([]string, error) {
	var values []string
	for run != "" {
		if len(run) < 6 {
			return nil, fmt.Errorf("redisengine: a run of items: %w", dibs.ErrCorrupt)
		}
		end := 6 + int(run[4])<<8 + int(run[5])
		if len(run) < end {
			return nil, fmt.Errorf("redisengine: a run of items: %w", dibs.ErrCorrupt)
		}
		values, run = append(values, run[6:end]), run[end:]
	}
	return values, nil
}
