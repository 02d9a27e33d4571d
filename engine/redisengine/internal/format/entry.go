package format

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dibs-dev/dibs"
)

// A payload is what one step wrote to the stream: version, kind, time (6
// bytes), then by its kind, most significant bytes first:
//
//	open     place before: epoch (2), seq (4)
//	grant    claims (4), token (8), pay by (6), 1 when there are items, 1 when there
//	         are quantities, else all are 1; the quantities (4), then the items'
//	         numbers (4 each). The claims stand beside it, a msgpack array of what
//	         AppendBegin writes, and behind them, where some have one, their
//	         references: the claim's number from 1 (2), length (2), text.
//	release  place released: epoch (2), seq (4); quantity (4), the items' numbers
//	adjust   ref's length and ref, 1 when negative, units (7), the items' numbers
//
// The stream's id is the place of the last entry in it.
const payloadVersion = 2

// MaxBatch is the most claims that one call decides, and thus the most entries of one
// element of the stream.
const MaxBatch = 1024

// Element is one element of the stream, which may hold many entries.
type Element struct {
	Last    dibs.Cursor
	Payload string
	// Claims are those of a batch of grants, and References of those that have one;
	// empty for all else.
	Claims, References string
	// Token is that of the batch; empty for all but grants.
	Token   string
	Entries []dibs.Entry
	// Salvaged is set when it could not be read, and its entries are from elsewhere.
	Salvaged bool
}

// Decode reads the payload. ErrCorrupt when it is not exactly what was written.
func (s *Element) Decode() error {
	r := reader{s: s.Payload}
	version, kind := r.byte(), dibs.EntryKind(r.byte())
	e := dibs.Entry{Cursor: s.Last, Kind: kind, At: r.ms()}
	switch kind {
	case dibs.EntryOpen:
		e.Prev = r.place()
	case dibs.EntryGrant:
		s.grants(&r, &e)
	case dibs.EntryRelease:
		e.Target = r.place()
		e.Quantity = int64(r.uint32())
		e.Items = r.rest()
	case dibs.EntryAdjust:
		e.Ref = r.take(int(r.byte()))
		negative := r.byte() == 1
		e.Quantity = int64(r.byte())<<48 | r.ms()
		if negative {
			e.Quantity = -e.Quantity
		}
		e.Items = r.rest()
	default:
		r.bad = true
	}
	if r.bad || r.s != "" || version != payloadVersion || kind != dibs.EntryGrant && s.Claims+s.References != "" {
		s.Entries = nil
		return fmt.Errorf("redisengine: journal entry %s: %w", s.Last, dibs.ErrCorrupt)
	}
	if kind != dibs.EntryGrant {
		s.Entries = []dibs.Entry{e}
	}
	return nil
}

// minGrant is the fewest bytes of one claim.
const minGrant = 1 + 2 + 1 + 8

func (s *Element) grants(r *reader, e *dibs.Entry) {
	n := r.uint32()
	s.Token = r.take(8)
	e.PayBy = r.ms()
	items, quantities := r.byte(), r.byte()
	claims := reader{s: s.Claims}
	// A damaged count cannot ask for more than there is, nor for places before
	// the first.
	if r.bad || n == 0 || int64(n) > int64(len(s.Claims)/minGrant) || n > s.Last.Seq || items > 1 || quantities > 1 ||
		claims.byte() != 0xdc || claims.uint16() != uint16(n) {
		r.bad = true
		return
	}
	s.Entries = make([]dibs.Entry, n)
	for i := range s.Entries {
		g := &s.Entries[i]
		*g = *e
		g.Seq = s.Last.Seq - n + 1 + uint32(i)
		g.UserID, g.Key = claims.begin()
		g.Quantity = 1
		if quantities == 1 {
			g.Quantity = int64(r.uint32())
		}
	}
	for i := range s.Entries {
		if items == 1 {
			s.Entries[i].Items = r.numbers(s.Entries[i].Quantity)
		}
	}
	r.bad = r.bad || claims.bad || claims.s != "" || !s.referred()
}

// MaxReference is the most bytes of a claim's reference that the journal can hold.
const MaxReference = math.MaxUint16

// AppendReference writes the reference of a batch's claim, whose number counts from 1.
func AppendReference(buf []byte, number uint16, text string) []byte {
	buf = binary.BigEndian.AppendUint16(buf, number)
	return append(binary.BigEndian.AppendUint16(buf, uint16(len(text))), text...)
}

// referred gives the entries their references. False when these are not in the order
// of the claims, or are no claim's.
func (s *Element) referred() bool {
	r, last := reader{s: s.References}, uint16(0)
	for r.s != "" {
		number := r.uint16()
		text := r.take(int(r.uint16()))
		if r.bad || text == "" || number <= last || int(number) > len(s.Entries) {
			return false
		}
		s.Entries[number-1].Reference, last = text, number
	}
	return true
}

// reader takes values off a string; bad is set for good at the first that is
// not there.
type reader struct {
	s   string
	bad bool
}

func (r *reader) take(n int) string {
	if r.bad || n > len(r.s) {
		r.bad, r.s = true, ""
		return ""
	}
	v := r.s[:n]
	r.s = r.s[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != "" {
		return v[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if v := r.take(4); v != "" {
		return binary.BigEndian.Uint32([]byte(v))
	}
	return 0
}

func (r *reader) uint64() uint64 {
	high := uint64(r.uint32())
	return high<<32 | uint64(r.uint32())
}

func (r *reader) uint16() uint16 {
	high := uint16(r.byte())
	return high<<8 | uint16(r.byte())
}

// begin reads what AppendBegin wrote.
func (r *reader) begin() (user string, key uint64) {
	size := int(r.byte())
	if size == 0xda {
		size = int(r.uint16())
	} else {
		size -= 0xa0
	}
	before := len(r.s)
	user, rest, err := CutName(r.s)
	if err != nil {
		r.bad, r.s = true, ""
		return "", 0
	}
	r.s = rest
	count := r.byte()
	key = r.uint64()
	r.bad = r.bad || count != 1 || before-len(r.s) != size
	return user, key
}

func (r *reader) ms() int64 {
	if v := r.take(6); v != "" {
		return MSOf(v)
	}
	return 0
}

func (r *reader) place() dibs.Cursor {
	v := r.take(placeSize)
	if v == "" {
		return dibs.Cursor{}
	}
	c := PlaceOf(v)
	if c.Epoch > dibs.MaxEpoch {
		r.bad = true
	}
	return c
}

func (r *reader) numbers(n int64) []uint32 {
	if n > math.MaxInt32 || n*4 > int64(len(r.s)) {
		r.bad = true
		return nil
	}
	numbers := make([]uint32, n)
	for i := range numbers {
		numbers[i] = r.uint32()
	}
	return numbers
}

// rest reads the numbers that fill what is left; nil for none.
func (r *reader) rest() []uint32 {
	if len(r.s) == 0 {
		return nil
	}
	if len(r.s)%4 != 0 {
		r.bad = true
		return nil
	}
	return r.numbers(int64(len(r.s) / 4))
}
