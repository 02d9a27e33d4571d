package redisengine

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/dibs-dev/dibs"
)

// granted is what the claim script writes for two grants of items.
func granted() (payload, claims string) {
	b := appendMS([]byte{payloadVersion, byte(dibs.EntryGrant)}, 1_795_000_000_123)
	b = append(binary.BigEndian.AppendUint32(b, 2), "token-of"...)
	b = append(appendMS(b, 1_795_000_900_123), 1, 1)
	for _, n := range []uint32{1, 2, 0, 10, 11} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return string(b), string(appendBegin(appendBegin(appendArray(nil, 2), "ann-with-a-name-of-many-letters", 77), "12345678", 78))
}

func TestGrantsDecode(t *testing.T) {
	s := streamEntry{last: dibs.Cursor{Epoch: 3, Seq: 9}}
	s.payload, s.claims = granted()
	if err := s.decode(); err != nil {
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
	if !reflect.DeepEqual(s.entries, want) || s.token != "token-of" {
		t.Errorf("got %+v with %q, want %+v", s.entries, s.token, want)
	}
}

// A payload that is cut at any byte, or longer than it should be, is damage.
func TestDamagedPayloadsAreRefused(t *testing.T) {
	payload, claims := granted()
	last := dibs.Cursor{Epoch: 3, Seq: 9}
	refused := func(bad streamEntry) {
		t.Helper()
		if err := bad.decode(); !errors.Is(err, dibs.ErrCorrupt) || bad.entries != nil {
			t.Errorf("%q with %q at %v: %d entries, %v", bad.payload, bad.claims, bad.last, len(bad.entries), err)
		}
	}
	for n := range payload {
		refused(streamEntry{last: last, payload: payload[:n], claims: claims})
	}
	for n := range claims {
		refused(streamEntry{last: last, payload: payload, claims: claims[:n]})
	}
	for _, bad := range []streamEntry{
		{last: last, payload: payload + "x", claims: claims},
		{last: last, payload: payload, claims: claims + "x"},
		{last: dibs.Cursor{Epoch: 3, Seq: 1}, payload: payload, claims: claims},
		{last: last, payload: "\x01" + payload[1:], claims: claims},
		{last: last, payload: "\x02\x09" + payload[2:], claims: claims},
		{last: last, payload: payload, claims: "\xdd" + claims[1:]},
		{last: last, payload: payload, claims: claims[:2] + "\x03" + claims[3:]},
		{last: last, payload: string(appendPlace(appendMS([]byte{2, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2})), claims: claims},
	} {
		refused(bad)
	}
}

// Whatever bytes an element of the stream holds, decoding ends with entries
// that fit, or ErrCorrupt.
func FuzzDecode(f *testing.F) {
	payload, claims := granted()
	f.Add([]byte(payload), []byte(claims), uint32(9))
	f.Add(appendPlace(appendMS([]byte{2, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), []byte(nil), uint32(1))
	f.Add(append(appendPlace(appendMS([]byte{2, 3}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), 0, 0, 0, 1), []byte(nil), uint32(4))
	f.Add(append(appendMS([]byte{2, 4}, 5), 1, 'r', 1, 0, 0, 0, 0, 0, 0, 3), []byte(nil), uint32(4))
	f.Fuzz(func(t *testing.T, payload, claims []byte, seq uint32) {
		s := streamEntry{last: dibs.Cursor{Epoch: 1, Seq: seq}, payload: string(payload), claims: string(claims)}
		if err := s.decode(); err != nil {
			if !errors.Is(err, dibs.ErrCorrupt) || s.entries != nil {
				t.Fatalf("%d entries with %v", len(s.entries), err)
			}
			return
		}
		if n := len(s.entries); n == 0 || s.entries[n-1].Cursor != s.last {
			t.Fatalf("%d entries do not end at %v", n, s.last)
		}
	})
}

func TestPlacesOfTheStream(t *testing.T) {
	for _, c := range []dibs.Cursor{{}, {Epoch: 1, Seq: 2}, {Epoch: dibs.MaxEpoch, Seq: 1<<32 - 1}} {
		if got, err := streamPlace(streamID(c)); err != nil || got != c {
			t.Errorf("%v becomes %v, %v", c, got, err)
		}
	}
	for _, id := range []string{"", "1", "1-", "-1", "1-x", "4096-1", "1-4294967296", "1-2-3"} {
		if _, err := streamPlace(id); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("the id %q is %v", id, err)
		}
	}
	for _, member := range []string{"", "1", "1:", ":1", "1:256", "4294967296:1", "x:1"} {
		if _, err := shardOf(member); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("the shard %q is %v", member, err)
		}
	}
}
