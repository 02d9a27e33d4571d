package dibs

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A position packs into bytes that sort as the positions of one shard do, and back.
func TestPositionsPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := positionOf(t), positionOf(t)
		packed := a.pack()
		if back := unpackPosition(packed); back != a {
			t.Fatalf("%v is read back as %v", a, back)
		}
		b.ShardID = a.ShardID
		other := b.pack()
		if a.Before(b.Cursor) != (bytes.Compare(packed[:], other[:]) < 0) {
			t.Fatalf("%v is before %v: %t, and its bytes are not in that order", a, b, a.Before(b.Cursor))
		}
	})
}

// An epoch comes before the next one, however many entries it had.
func TestCursorsGoByEpochFirst(t *testing.T) {
	late, next := Cursor{Epoch: 1, Seq: 1 << 31}, Cursor{Epoch: 2, Seq: 1}
	if !late.Before(next) || next.Before(late) || late.Before(late) {
		t.Errorf("%v before %v: %t, the other way: %t, before itself: %t", late, next, late.Before(next), next.Before(late), late.Before(late))
	}
}
