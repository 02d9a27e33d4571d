package format

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/dibs-dev/dibs"
)

// granted is what the claim script writes for two grants of items.
func granted() (payload, claims string) {
	b := AppendMS([]byte{payloadVersion, byte(dibs.EntryGrant)}, 1_795_000_000_123)
	b = append(binary.BigEndian.AppendUint32(b, 2), "token-of"...)
	b = append(AppendMS(b, 1_795_000_900_123), 1, 1)
	for _, n := range []uint32{1, 2, 0, 10, 11} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return string(b), string(AppendBegin(AppendBegin(AppendArray(nil, 2), "ann-with-a-name-of-many-letters", 77), "12345678", 78))
}

func TestGrantsDecode(t *testing.T) {
	s := Element{Last: dibs.Cursor{Epoch: 3, Seq: 9}}
	s.Payload, s.Claims = granted()
	if err := s.Decode(); err != nil {
		t.Fatal(err)
	}
	want := []dibs.Entry{
		{
			Cursor: dibs.Cursor{Epoch: 3, Seq: 8}, Kind: dibs.EntryGrant, At: 1_795_000_000_123, UserID: "ann-with-a-name-of-many-letters", Key: 77,
			PayBy: 1_795_000_900_123, Quantity: 1, Items: []uint32{0},
		},
		{
			Cursor: dibs.Cursor{Epoch: 3, Seq: 9}, Kind: dibs.EntryGrant, At: 1_795_000_000_123, UserID: "12345678", Key: 78,
			PayBy: 1_795_000_900_123, Quantity: 2, Items: []uint32{10, 11},
		},
	}
	if !reflect.DeepEqual(s.Entries, want) || s.Token != "token-of" {
		t.Errorf("got %+v with %q, want %+v", s.Entries, s.Token, want)
	}
}

// references is what stands beside granted where both claims have a reference.
func references() string {
	return string(AppendReference(AppendReference(nil, 1, "https://shop.example/1"), 2, "篮子"))
}

// References belong to the claims whose numbers they have; a claim without one has none.
func TestReferencesDecode(t *testing.T) {
	payload, claims := granted()
	for refs, want := range map[string][2]string{
		references(): {"https://shop.example/1", "篮子"}, string(AppendReference(nil, 2, "b")): {"", "b"}, "": {},
	} {
		s := Element{Last: dibs.Cursor{Epoch: 3, Seq: 9}, Payload: payload, Claims: claims, References: refs}
		if err := s.Decode(); err != nil || s.Entries[0].Reference != want[0] || s.Entries[1].Reference != want[1] {
			t.Errorf("%q: %+v, %v", refs, s.Entries, err)
		}
	}
}

// A payload that is cut at any byte, or longer than it should be, is damage.
func TestDamagedPayloadsAreRefused(t *testing.T) {
	payload, claims := granted()
	last := dibs.Cursor{Epoch: 3, Seq: 9}
	refused := func(bad Element) {
		t.Helper()
		if err := bad.Decode(); !errors.Is(err, dibs.ErrCorrupt) || bad.Entries != nil {
			t.Errorf("%q with %q at %v: %d entries, %v", bad.Payload, bad.Claims, bad.Last, len(bad.Entries), err)
		}
	}
	for n := range payload {
		refused(Element{Last: last, Payload: payload[:n], Claims: claims})
	}
	for n := range claims {
		refused(Element{Last: last, Payload: payload, Claims: claims[:n]})
	}
	for n := range references() {
		// Where the first one ends, the second may be missing.
		if refs := references()[:n]; n > 0 && refs != string(AppendReference(nil, 1, "https://shop.example/1")) {
			refused(Element{Last: last, Payload: payload, Claims: claims, References: refs})
		}
	}
	for _, refs := range []string{
		string(AppendReference(nil, 0, "a")), string(AppendReference(nil, 3, "a")), string(AppendReference(nil, 1, "")),
		string(AppendReference(AppendReference(nil, 2, "a"), 1, "b")), string(AppendReference(AppendReference(nil, 1, "a"), 1, "b")),
	} {
		refused(Element{Last: last, Payload: payload, Claims: claims, References: refs})
	}
	refused(Element{Last: last, Payload: string(AppendPlace(AppendMS([]byte{2, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2})), References: references()})
	for _, bad := range []Element{
		{Last: last, Payload: payload + "x", Claims: claims},
		{Last: last, Payload: payload, Claims: claims + "x"},
		{Last: dibs.Cursor{Epoch: 3, Seq: 1}, Payload: payload, Claims: claims},
		{Last: last, Payload: "\x01" + payload[1:], Claims: claims},
		{Last: last, Payload: "\x02\x09" + payload[2:], Claims: claims},
		{Last: last, Payload: payload, Claims: "\xdd" + claims[1:]},
		{Last: last, Payload: payload, Claims: claims[:2] + "\x03" + claims[3:]},
		{Last: last, Payload: string(AppendPlace(AppendMS([]byte{2, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2})), Claims: claims},
	} {
		refused(bad)
	}
}

// Decoding an element of any bytes ends with entries
// that fit, or ErrCorrupt.
func FuzzDecode(f *testing.F) {
	payload, claims := granted()
	f.Add([]byte(payload), []byte(claims), []byte(references()), uint32(9))
	f.Add(AppendPlace(AppendMS([]byte{2, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), []byte(nil), []byte(nil), uint32(1))
	f.Add(append(AppendPlace(AppendMS([]byte{2, 3}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), 0, 0, 0, 1), []byte(nil), []byte(nil), uint32(4))
	f.Add(append(AppendMS([]byte{2, 4}, 5), 1, 'r', 1, 0, 0, 0, 0, 0, 0, 3), []byte(nil), []byte(nil), uint32(4))
	f.Fuzz(func(t *testing.T, payload, claims, refs []byte, seq uint32) {
		s := Element{Last: dibs.Cursor{Epoch: 1, Seq: seq}, Payload: string(payload), Claims: string(claims), References: string(refs)}
		if err := s.Decode(); err != nil {
			if !errors.Is(err, dibs.ErrCorrupt) || s.Entries != nil {
				t.Fatalf("%d entries with %v", len(s.Entries), err)
			}
			return
		}
		if n := len(s.Entries); n == 0 || s.Entries[n-1].Cursor != s.Last {
			t.Fatalf("%d entries do not end at %v", n, s.Last)
		}
	})
}
