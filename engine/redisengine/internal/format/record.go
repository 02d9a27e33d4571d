package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"

	"github.com/dibs-dev/dibs"
)

// A record of a bucket is one claim: key (8 bytes), mark (2) and seq (4), most
// significant first. The mark is 1 bit that says released, 3 of the quantity and
// 12 of the epoch. Where the quantity does not fit in, its bits are spelt, and a
// second record, of zeros, has it in place of a seq. lua/shard.lua has the same
// numbers.
const (
	RecordSize   = 14
	markAt       = 8
	seqAt        = 10
	spelt        = 7
	markBits     = 12
	releasedMark = 1 << 15
	TimeSize     = 6
	placeSize    = 6
)

// mostShort is the most records whose count takes one byte.
const mostShort = math.MaxUint8

// AppendArray begins a msgpack array of at most 65,535 values.
func AppendArray(buf []byte, n int) []byte { return append(buf, 0xdc, byte(n>>8), byte(n)) }

// AppendUint16 writes a msgpack number.
func AppendUint16(buf []byte, n uint16) []byte { return append(buf, 0xcd, byte(n>>8), byte(n)) }

// AppendBegin writes a claim as it goes to the script and into the journal: how a
// user who has one record begins in a bucket, as a msgpack string. That is the
// name, the count, which is 1, and the key.
func AppendBegin(buf []byte, user string, key uint64) []byte {
	at := len(buf)
	buf = AppendName(append(buf, 0), user)
	buf = binary.BigEndian.AppendUint64(append(buf, 1), key)
	size := len(buf) - at - 1
	if size < 32 {
		buf[at] = 0xa0 | byte(size)
		return buf
	}
	// A longer text has its size behind the mark, in two bytes.
	buf = append(buf, 0, 0)
	copy(buf[at+3:], buf[at+1:])
	buf[at], buf[at+1], buf[at+2] = 0xda, byte(size>>8), byte(size)
	return buf
}

// AppendHolder writes a user and their records as a bucket has them: the name,
// the count of the records, and they. The count is one byte, and where that
// does not do, a zero and four bytes.
func AppendHolder(buf []byte, user string, records []byte) []byte {
	buf = AppendName(buf, user)
	if n := len(records) / RecordSize; n <= mostShort {
		buf = append(buf, byte(n))
	} else {
		buf = binary.BigEndian.AppendUint32(append(buf, 0), uint32(n))
	}
	return append(buf, records...)
}

// CutHolder takes the first user off a bucket that is not empty.
func CutHolder(bucket string) (user, rest string, err error) {
	user, bucket, err = CutName(bucket)
	if err != nil || bucket == "" {
		return "", "", dibs.ErrCorrupt
	}
	count, bucket := int64(bucket[0]), bucket[1:]
	if count == 0 {
		if len(bucket) < 4 {
			return "", "", dibs.ErrCorrupt
		}
		count, bucket = int64(binary.BigEndian.Uint32([]byte(bucket[:4]))), bucket[4:]
	}
	if int64(len(bucket)) < count*RecordSize {
		return "", "", dibs.ErrCorrupt
	}
	return user, bucket[count*RecordSize:], nil
}

// AppendRecord writes a claim.
func AppendRecord(buf []byte, h *dibs.Holding) []byte {
	mark := uint16(min(h.Quantity, spelt))<<markBits | h.Epoch
	if h.Released {
		mark |= releasedMark
	}
	buf = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(buf, h.Key), mark)
	buf = binary.BigEndian.AppendUint32(buf, h.Seq)
	if h.Quantity >= spelt {
		buf = append(buf, make([]byte, seqAt)...)
		buf = binary.BigEndian.AppendUint32(buf, uint32(h.Quantity))
	}
	return buf
}

// errCut says that an answer ends within a claim.
var errCut = errors.New("redisengine: a script answered with a part of a claim")

// CutGrant takes a time and a record off an answer.
func CutGrant(id dibs.ShardID, user, s string, payInMS int64) (g dibs.Grant, rest string, err error) {
	if len(s) < TimeSize+RecordSize {
		return g, "", errCut
	}
	g.ShardID, g.UserID, g.At = id, user, MSOf(s)
	s = s[TimeSize:]
	mark := binary.BigEndian.Uint16([]byte(s[markAt:seqAt]))
	g.Seq = binary.BigEndian.Uint32([]byte(s[seqAt:RecordSize]))
	g.Epoch, g.Released = mark&dibs.MaxEpoch, mark&releasedMark != 0
	g.Quantity = int64(mark &^ releasedMark >> markBits)
	s = s[RecordSize:]
	if g.Quantity == spelt {
		if len(s) < RecordSize {
			return g, "", errCut
		}
		g.Quantity, s = int64(binary.BigEndian.Uint32([]byte(s[seqAt:RecordSize]))), s[RecordSize:]
	}
	if payInMS > 0 {
		g.PayBy = g.At + payInMS
	}
	return g, s, nil
}

// GrantOf reads a time, a record and the items behind it.
func GrantOf(id dibs.ShardID, user, s string, payInMS int64) (dibs.Grant, error) {
	g, items, err := CutGrant(id, user, s, payInMS)
	if err != nil {
		return g, err
	}
	g.Items, err = ItemValues(items)
	return g, err
}

// AppendPlace writes a place as the index and the items of claims have it.
func AppendPlace(buf []byte, c dibs.Cursor) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(buf, c.Epoch), c.Seq)
}

// PlaceOf reads what AppendPlace wrote, of at least 6 bytes.
func PlaceOf(s string) dibs.Cursor {
	return dibs.Cursor{Epoch: binary.BigEndian.Uint16([]byte(s[:2])), Seq: binary.BigEndian.Uint32([]byte(s[2:placeSize]))}
}

// AppendMS writes a time in 6 bytes.
func AppendMS(buf []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(buf, uint16(ms>>32)), uint32(ms))
}

// MSOf reads what AppendMS wrote, of at least 6 bytes.
func MSOf(s string) int64 {
	return int64(binary.BigEndian.Uint16([]byte(s[:2])))<<32 | int64(binary.BigEndian.Uint32([]byte(s[2:TimeSize])))
}

// HeldOf reads a run of places.
func HeldOf(id dibs.ShardID, places string) ([]dibs.Position, error) {
	if len(places)%placeSize != 0 {
		return nil, errCut
	}
	var held []dibs.Position
	for ; places != ""; places = places[placeSize:] {
		held = append(held, dibs.Position{ShardID: id, Cursor: PlaceOf(places)})
	}
	return held, nil
}

// AppendItem writes an item as the free list and claims have it: number (4
// bytes), length (2), value.
func AppendItem(buf []byte, number uint32, value string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, number)
	return append(binary.BigEndian.AppendUint16(buf, uint16(len(value))), value...)
}

// ItemValues reads the values of a run of items; nil when it is empty.
func ItemValues(run string) ([]string, error) {
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

// Holdable refuses a claim that no record can hold.
func Holdable(user string, quantity int64) bool {
	return len(user) > 0 && len(user) <= MaxUserLen && quantity >= 1 && quantity <= math.MaxUint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HashOf spreads users over the buckets of a shard. The bytes are the string's
// own: a copy would be one more thing to collect for each claim.
func HashOf(user string) uint32 {
	return crc32.Checksum(unsafe.Slice(unsafe.StringData(user), len(user)), castagnoli)
}

// BucketOf is the number of a user's bucket, from 1.
func BucketOf(user string, buckets int64) uint32 { return uint32(int64(HashOf(user))%buckets) + 1 }
