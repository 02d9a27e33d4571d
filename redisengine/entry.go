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
//	grant    claims (4), token (8), pay by (6), 1 when items follow; then each:
//	         name's length and name, key (8), quantity (4), the items' numbers (4 each)
//	release  place released: epoch (2), seq (4); quantity (4), the items' numbers
//	adjust   ref's length and ref, 1 when negative, units (7), the items' numbers
//
// The stream's id is the place of the last entry in it.
const payloadVersion = 1

// streamEntry is one element of the stream, which may hold many entries.
type streamEntry struct {
	last    dibs.Cursor
	payload string
	// token is that of the batch; empty for all but grants.
	token   string
	entries []dibs.Entry
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
	if r.bad || r.s != "" || version != payloadVersion {
		s.entries = nil
		return fmt.Errorf("redisengine: journal entry %s: %w", s.last, dibs.ErrCorrupt)
	}
	if kind != dibs.EntryGrant {
		s.entries = []dibs.Entry{e}
	}
	return nil
}

// minGrant is the fewest bytes of one grant.
const minGrant = 1 + 8 + 4

func (s *streamEntry) grants(r *reader, e *dibs.Entry) {
	n := r.uint32()
	s.token = r.take(8)
	e.PayBy = r.ms()
	items := r.byte()
	// A damaged count cannot ask for more than the payload has, nor for places
	// before the first.
	if n == 0 || int64(n) > int64(len(r.s)/minGrant) || n > s.last.Seq || items > 1 {
		r.bad = true
		return
	}
	s.entries = make([]dibs.Entry, n)
	for i := range s.entries {
		g := &s.entries[i]
		*g = *e
		g.Seq = s.last.Seq - n + 1 + uint32(i)
		g.UserID = r.take(int(r.byte()))
		g.Key = r.uint64()
		g.Quantity = int64(r.uint32())
		if items == 1 {
			g.Items = r.numbers(g.Quantity)
		}
	}
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
	c, released := placeOf(v)
	if released || c.Epoch > dibs.MaxEpoch {
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
