package memengine

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/dibs-dev/dibs"
)

// A payload is: version, base time (8 bytes), entries, CRC-32C (4 bytes).
// Within an entry, numbers are varints; the place is not stored, since a row
// says where its entries begin.
const (
	payloadVersion = 1
	payloadHeader  = 1 + 8
	payloadSum     = 4
)

// withReference is added to the kind of a grant whose caller gave a reference, which
// stands at its end. Entries without one are what they were in earlier versions.
const withReference = 0x80

// castagnoli is the table of CRC-32C. The checksum finds damage by a disk or a
// restore; it is no defence against somebody who changes rows on purpose.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginPayload starts a payload in buf, whose entries' times are stored as
// differences from baseMS.
func beginPayload(buf []byte, baseMS int64) []byte {
	buf = append(buf[:0], payloadVersion)
	return binary.LittleEndian.AppendUint64(buf, uint64(baseMS))
}

// sealPayload ends a payload with its checksum.
func sealPayload(buf []byte) []byte {
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, castagnoli))
}

// appendEntry writes one entry; baseMS is the payload's.
// The time to pay is stored as PayBy - At + 1, so that 0 means none.
func appendEntry(buf []byte, baseMS int64, e *dibs.Entry) []byte {
	kind := byte(e.Kind)
	if e.Reference != "" {
		kind |= withReference
	}
	buf = append(buf, kind)
	buf = binary.AppendVarint(buf, e.At-baseMS)
	switch e.Kind {
	case dibs.EntryGrant:
		buf = appendString(buf, e.UserID)
		buf = binary.LittleEndian.AppendUint64(buf, e.Key)
		buf = binary.AppendUvarint(buf, uint64(e.Quantity))
		payIn := int64(0)
		if e.PayBy != 0 {
			payIn = e.PayBy - e.At + 1
		}
		buf = binary.AppendVarint(buf, payIn)
	case dibs.EntryRelease:
		buf = appendCursor(buf, e.Target)
		buf = binary.AppendUvarint(buf, uint64(e.Quantity))
	case dibs.EntryAdjust:
		buf = appendString(buf, e.Ref)
		buf = binary.AppendVarint(buf, e.Quantity)
	case dibs.EntryOpen:
		return appendCursor(buf, e.Prev)
	}
	buf = binary.AppendUvarint(buf, uint64(len(e.Items)))
	for _, n := range e.Items {
		buf = binary.AppendUvarint(buf, uint64(n))
	}
	if e.Reference != "" {
		buf = appendString(buf, e.Reference)
	}
	return buf
}

func appendString(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

func appendCursor(buf []byte, c dibs.Cursor) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(buf, uint64(c.Epoch)), uint64(c.Seq))
}

// decodeRow appends a row's entries after a place to dst. A row whose bytes
// are not exactly what was written is ErrCorrupt, and dst stays as it was.
// Every value is read by its own bounds: a row of another version of dibs, or a
// damaged one whose sum fits, must not make the engine allocate or panic.
func decodeRow(dst []dibs.Entry, row *dibs.JournalRow, after dibs.Cursor) ([]dibs.Entry, error) {
	n := len(row.Payload) - payloadSum
	if n < payloadHeader || row.Payload[0] != payloadVersion || row.First > row.Last ||
		crc32.Checksum(row.Payload[:n], castagnoli) != binary.LittleEndian.Uint32(row.Payload[n:]) {
		return dst, corruptRow(row)
	}
	base := int64(binary.LittleEndian.Uint64(row.Payload[1:]))
	// One string for the whole row: the entries' texts are parts of it.
	r := reader{s: string(row.Payload[payloadHeader:n])}
	out := dst
	for seq := uint64(row.First); seq <= uint64(row.Last); seq++ {
		e := dibs.Entry{Cursor: dibs.Cursor{Epoch: row.Epoch, Seq: uint32(seq)}}
		r.entry(&e, base)
		if r.bad {
			return dst, corruptRow(row)
		}
		if after.Before(e.Cursor) {
			out = append(out, e)
		}
	}
	if r.s != "" {
		return dst, corruptRow(row)
	}
	return out, nil
}

func corruptRow(row *dibs.JournalRow) error {
	return fmt.Errorf("memengine: journal row %s@%d.%d-%d: %w", row.Shard, row.Epoch, row.First, row.Last, dibs.ErrCorrupt)
}

// reader takes values off a string; bad is set for good at the first that is
// not there.
// A caller reads all it needs and looks at bad once. Until then it must not rely on a
// number, for memory to take say.
type reader struct {
	s   string
	bad bool
}

func (r *reader) entry(e *dibs.Entry, base int64) {
	kind := r.byte()
	referred := kind&withReference != 0
	e.Kind = dibs.EntryKind(kind &^ withReference)
	r.bad = r.bad || referred && e.Kind != dibs.EntryGrant
	e.At = base + r.varint()
	switch e.Kind {
	case dibs.EntryGrant:
		e.UserID = r.string()
		e.Key = r.uint64()
		e.Quantity = int64(r.uvarint(math.MaxUint32))
		if payIn := r.varint(); payIn != 0 {
			e.PayBy = e.At + payIn - 1
		}
	case dibs.EntryRelease:
		e.Target = r.cursor()
		e.Quantity = int64(r.uvarint(math.MaxUint32))
	case dibs.EntryAdjust:
		e.Ref = r.string()
		e.Quantity = r.varint()
	case dibs.EntryOpen:
		e.Prev = r.cursor()
		return
	default:
		r.bad = true
		return
	}
	// Every item takes a byte at least, so a count beyond the rest is damage.
	if n := r.uvarint(uint64(len(r.s))); n > 0 && !r.bad {
		e.Items = make([]uint32, n)
		for i := range e.Items {
			e.Items[i] = uint32(r.uvarint(math.MaxUint32))
		}
	}
	if referred {
		e.Reference = r.string()
		r.bad = r.bad || e.Reference == ""
	}
}

func (r *reader) byte() byte {
	if len(r.s) == 0 {
		r.bad = true
		return 0
	}
	b := r.s[0]
	r.s = r.s[1:]
	return b
}

// uvarint reads a number of at most most.
func (r *reader) uvarint(most uint64) uint64 {
	// The compiler makes no copy of the text.
	v, n := binary.Uvarint([]byte(r.s))
	if r.bad || n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.s = r.s[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint(math.MaxUint64)
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) uint64() uint64 {
	if len(r.s) < 8 {
		r.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64([]byte(r.s[:8]))
	r.s = r.s[8:]
	return v
}

func (r *reader) string() string {
	n := r.uvarint(uint64(len(r.s)))
	if r.bad || n > uint64(len(r.s)) {
		r.bad = true
		return ""
	}
	v := r.s[:n]
	r.s = r.s[n:]
	return v
}

func (r *reader) cursor() dibs.Cursor {
	e := r.uvarint(dibs.MaxEpoch)
	s := r.uvarint(math.MaxUint32)
	return dibs.Cursor{Epoch: uint16(e), Seq: uint32(s)}
}
