package redisengine

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/dibs-dev/dibs"
)

// grantPayload is what the claim script writes for two grants of items.
func grantPayload() string {
	b := appendMS([]byte{payloadVersion, byte(dibs.EntryGrant)}, 1_795_000_000_123)
	b = append(binary.BigEndian.AppendUint32(b, 2), "token-of"...)
	b = append(appendMS(b, 1_795_000_900_123), 1)
	for i, user := range []string{"ann", "bob-with-a-longer-name"} {
		b = binary.BigEndian.AppendUint64(appendUser(b, user), uint64(77+i))
		b = binary.BigEndian.AppendUint32(b, uint32(i+1))
		for n := range i + 1 {
			b = binary.BigEndian.AppendUint32(b, uint32(10*i+n))
		}
	}
	return string(b)
}

func TestGrantsDecode(t *testing.T) {
	s := streamEntry{last: dibs.Cursor{Epoch: 3, Seq: 9}, payload: grantPayload()}
	if err := s.decode(); err != nil {
		t.Fatal(err)
	}
	want := []dibs.Entry{
		{
			Cursor: dibs.Cursor{Epoch: 3, Seq: 8}, Kind: dibs.EntryGrant, At: 1_795_000_000_123, UserID: "ann", Key: 77,
			PayBy: 1_795_000_900_123, Quantity: 1, Items: []uint32{0},
		},
		{
			Cursor: dibs.Cursor{Epoch: 3, Seq: 9}, Kind: dibs.EntryGrant, At: 1_795_000_000_123, UserID: "bob-with-a-longer-name", Key: 78,
			PayBy: 1_795_000_900_123, Quantity: 2, Items: []uint32{10, 11},
		},
	}
	if !reflect.DeepEqual(s.entries, want) || s.token != "token-of" {
		t.Errorf("got %+v with %q, want %+v", s.entries, s.token, want)
	}
}

// A payload that is cut at any byte, or longer than it should be, is damage.
func TestDamagedPayloadsAreRefused(t *testing.T) {
	whole := grantPayload()
	for n := range whole {
		s := streamEntry{last: dibs.Cursor{Epoch: 3, Seq: 9}, payload: whole[:n]}
		if err := s.decode(); !errors.Is(err, dibs.ErrCorrupt) || s.entries != nil {
			t.Errorf("cut to %d bytes: %d entries, %v", n, len(s.entries), err)
		}
	}
	for _, bad := range []streamEntry{
		{last: dibs.Cursor{Epoch: 3, Seq: 9}, payload: whole + "x"},
		{last: dibs.Cursor{Epoch: 3, Seq: 1}, payload: whole},
		{last: dibs.Cursor{Epoch: 3, Seq: 9}, payload: "\x02" + whole[1:]},
		{last: dibs.Cursor{Epoch: 3, Seq: 9}, payload: "\x01\x09" + whole[2:]},
	} {
		if err := bad.decode(); !errors.Is(err, dibs.ErrCorrupt) || bad.entries != nil {
			t.Errorf("%q at %v: %d entries, %v", bad.payload, bad.last, len(bad.entries), err)
		}
	}
}

// Whatever bytes an element of the stream holds, decoding ends with entries
// that fit, or ErrCorrupt.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(grantPayload()), uint32(9))
	f.Add(appendPlace(appendMS([]byte{1, 1}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), uint32(1))
	f.Add(append(appendPlace(appendMS([]byte{1, 3}, 5), dibs.Cursor{Epoch: 1, Seq: 2}), 0, 0, 0, 1), uint32(4))
	f.Add(append(appendMS([]byte{1, 4}, 5), 1, 'r', 1, 0, 0, 0, 0, 0, 0, 3), uint32(4))
	f.Fuzz(func(t *testing.T, payload []byte, seq uint32) {
		s := streamEntry{last: dibs.Cursor{Epoch: 1, Seq: seq}, payload: string(payload)}
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
