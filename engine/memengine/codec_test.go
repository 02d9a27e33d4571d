package memengine

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"pgregory.net/rapid"
)

// entryOf draws an entry of any kind.
func entryOf(t *rapid.T) dibs.Entry {
	e := dibs.Entry{At: rapid.Int64Range(0, 1<<43).Draw(t, "at")}
	numbers := rapid.SliceOfN(rapid.Uint32(), 1, 20)
	switch e.Kind = dibs.EntryKind(rapid.IntRange(1, 4).Draw(t, "kind")); e.Kind {
	case dibs.EntryGrant:
		e.UserID = rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "user")
		e.Key = rapid.Uint64().Draw(t, "key")
		e.Quantity = rapid.Int64Range(1, math.MaxUint32).Draw(t, "quantity")
		if rapid.Bool().Draw(t, "to pay") {
			e.PayBy = e.At + rapid.Int64Range(0, 1<<40).Draw(t, "pay in")
			e.PayBy = max(e.PayBy, 1)
		}
		e.Reference = rapid.StringN(0, 256, -1).Draw(t, "reference")
		if rapid.Bool().Draw(t, "with items") {
			e.Items = numbers.Draw(t, "items")
		}
	case dibs.EntryRelease:
		e.Target = cursorOf(t)
		e.Quantity = rapid.Int64Range(1, math.MaxUint32).Draw(t, "quantity")
	case dibs.EntryAdjust:
		e.Ref = rapid.String().Draw(t, "ref")
		e.Quantity = rapid.Int64().Draw(t, "delta")
		if rapid.Bool().Draw(t, "with items") {
			e.Items = numbers.Draw(t, "items")
		}
	case dibs.EntryOpen:
		e.Prev = cursorOf(t)
	}
	return e
}

func cursorOf(t *rapid.T) dibs.Cursor {
	return dibs.Cursor{Epoch: rapid.Uint16Range(0, dibs.MaxEpoch).Draw(t, "epoch"), Seq: rapid.Uint32().Draw(t, "seq")}
}

// rowOf encodes entries as a row that begins at a place.
func rowOf(epoch uint16, first uint32, entries []dibs.Entry) dibs.JournalRow {
	base := int64(0)
	if len(entries) > 0 {
		base = entries[0].At
	}
	buf := beginPayload(nil, base)
	for i := range entries {
		entries[i].Cursor = dibs.Cursor{Epoch: epoch, Seq: first + uint32(i)}
		buf = appendEntry(buf, base, &entries[i])
	}
	return dibs.JournalRow{Epoch: epoch, First: first, Last: first + uint32(len(entries)) - 1, Payload: sealPayload(buf)}
}

func TestRowsDecodeToWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(rapid.Custom(entryOf), 1, 30).Draw(t, "entries")
		row := rowOf(3, 10, entries)
		got, err := decodeRow(nil, &row, dibs.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, entries) {
			t.Fatalf("got  %+v\nwant %+v", got, entries)
		}
		skip := rapid.IntRange(0, len(entries)).Draw(t, "skip")
		got, err = decodeRow(nil, &row, dibs.Cursor{Epoch: 3, Seq: 9 + uint32(skip)})
		if err != nil || len(got) != len(entries)-skip {
			t.Fatalf("after %d entries: %d left, %v", skip, len(got), err)
		}
	})
}

// A row cut at any byte, or with any bit turned, is damage and yields nothing.
func TestDamagedRowsAreRefused(t *testing.T) {
	row := rowOf(1, 1, []dibs.Entry{
		{Kind: dibs.EntryOpen, At: 1000, Prev: dibs.Cursor{Epoch: 1, Seq: 2}},
		{Kind: dibs.EntryGrant, At: 1001, UserID: "u1", Key: 77, Quantity: 2, Items: []uint32{5, 6}},
		{Kind: dibs.EntryAdjust, At: 1002, Ref: "r", Quantity: -3},
		{Kind: dibs.EntryGrant, At: 1003, UserID: "u2", Key: 78, Quantity: 1, Reference: "basket-7"},
	})
	refused := func(what string, payload []byte) {
		bad := row
		bad.Payload = payload
		if got, err := decodeRow(nil, &bad, dibs.Cursor{}); !errors.Is(err, dibs.ErrCorrupt) || len(got) != 0 {
			t.Errorf("%s: %d entries, %v; want none and ErrCorrupt", what, len(got), err)
		}
	}
	for n := range row.Payload {
		refused("cut", row.Payload[:n])
		for bit := range 8 {
			turned := append([]byte(nil), row.Payload...)
			turned[n] ^= 1 << bit
			refused("bit turned", turned)
		}
	}
	for _, last := range []uint32{0, 2, 3, 5} {
		bad := row
		bad.Last = last
		if _, err := decodeRow(nil, &bad, dibs.Cursor{}); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("a row of 4 entries said to end at %d: %v", last, err)
		}
	}
}

// Decoding a row of any bytes ends with entries or ErrCorrupt; with a
// checksum made to fit, the reader's own checks are on trial.
func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}, uint32(1))
	f.Add(beginPayload(nil, 5), uint32(0))
	f.Add(append(beginPayload(nil, 5), 2, 0, 2, 'u', '1', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0), uint32(1))
	f.Fuzz(func(t *testing.T, body []byte, last uint32) {
		row := dibs.JournalRow{Epoch: 1, First: 1, Last: last, Payload: sealPayload(append([]byte(nil), body...))}
		entries, err := decodeRow(nil, &row, dibs.Cursor{})
		if err != nil {
			if !errors.Is(err, dibs.ErrCorrupt) || len(entries) != 0 {
				t.Fatalf("%d entries with %v", len(entries), err)
			}
			return
		}
		if len(entries) != int(last) {
			t.Fatalf("%d entries, the row says %d", len(entries), last)
		}
	})
}

// TestNumbers: a number that is cut off, too long or above its bound makes the reader bad for good, and reading copies
// nothing: rows are long.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]struct {
		most, is uint64
		bad      bool
	}{
		"\x7f":     {most: 127, is: 127},
		"\xac\x02": {most: 300, is: 300},
		"\xad\x02": {most: 300, bad: true},
		"\xac":     {most: 300, bad: true},
		"":         {most: 300, bad: true},
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": {most: math.MaxUint64, is: math.MaxUint64},
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02": {most: math.MaxUint64, bad: true},
	} {
		r := reader{s: text}
		if got := r.uvarint(want.most); got != want.is || r.bad != want.bad {
			t.Errorf("%q is %d, bad %v", text, got, r.bad)
		}
	}
	r := reader{s: "\xad\x02\x05"}
	if r.uvarint(300); r.uvarint(math.MaxUint64) != 0 {
		t.Error("a number is read after a bad one")
	}
	long := "\x05" + strings.Repeat("x", 100_000)
	if n := testing.AllocsPerRun(10, func() {
		r := reader{s: long}
		r.uvarint(300)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
