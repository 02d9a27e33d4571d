package redisengine

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
//	         appendBegin writes.
//	release  place released: epoch (2), seq (4); quantity (4), the items' numbers
//	adjust   ref's length and ref, 1 when negative, units (7), the items' numbers
//
// The stream's id is the place of the last entry in it.
const payloadVersion = 2

// streamEntry is one element of the stream, which may hold many entries.
type streamEntry struct {
	last    dibs.Cursor
	payload string
	// claims are those of a batch of grants; empty for all else.
	claims string
	// token is that of the batch; empty for all but grants.
	token   string
	entries []dibs.Entry
	// mended is set when it could not be read, and its entries are from elsewhere.
	mended bool
}

// decode reads the payload. ErrCorrupt when it is not exactly what was written.
func (s *streamEntry) decode() error {
	r := reader{s: s.payload}
	version, kind := r.byte(), dibs.EntryKind(r.byte())
	e := dibs.Entry{Cursor: s.last, Kind: kind, At: r.ms()}
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
	if r.bad || r.s != "" || version != payloadVersion || kind != dibs.EntryGrant && s.claims != "" {
		s.entries = nil
		return fmt.Errorf("redisengine: journal entry %s: %w", s.last, dibs.ErrCorrupt)
	}
	if kind != dibs.EntryGrant {
		s.entries = []dibs.Entry{e}
	}
	return nil
}

// minGrant is the fewest bytes of one claim.
const minGrant = 1 + 2 + 1 + 8

func (s *streamEntry) grants(r *reader, e *dibs.Entry) {
	n := r.uint32()
	s.token = r.take(8)
	e.PayBy = r.ms()
	items, quantities := r.byte(), r.byte()
	claims := reader{s: s.claims}
	// A damaged count cannot ask for more than there is, nor for places before
	// the first.
	if r.bad || n == 0 || int64(n) > int64(len(s.claims)/minGrant) || n > s.last.Seq || items > 1 || quantities > 1 ||
		claims.byte() != 0xdc || claims.uint16() != uint16(n) {
		r.bad = true
		return
	}
	s.entries = make([]dibs.Entry, n)
	for i := range s.entries {
		g := &s.entries[i]
		*g = *e
		g.Seq = s.last.Seq - n + 1 + uint32(i)
		g.UserID, g.Key = claims.begin()
		g.Quantity = 1
		if quantities == 1 {
			g.Quantity = int64(r.uint32())
		}
	}
	for i := range s.entries {
		if items == 1 {
			s.entries[i].Items = r.numbers(s.entries[i].Quantity)
		}
	}
	r.bad = r.bad || claims.bad || claims.s != ""
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

// begin reads what appendBegin wrote.
func (r *reader) begin() (user string, key uint64) {
	size := int(r.byte())
	if size == 0xda {
		size = int(r.uint16())
	} else {
		size -= 0xa0
	}
	before := len(r.s)
	user, rest, err := cutName(r.s)
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
		return msOf(v)
	}
	return 0
}

func (r *reader) place() dibs.Cursor {
	v := r.take(placeSize)
	if v == "" {
		return dibs.Cursor{}
	}
	c := placeOf(v)
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
