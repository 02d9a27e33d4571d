package dibs

import (
	"testing"

	"pgregory.net/rapid"
)

func markOf(t *rapid.T) Mark {
	return Mark{
		Version: rapid.Int64Range(0, 3).Draw(t, "version"),
		Head:    Cursor{Epoch: rapid.Uint16Range(0, 2).Draw(t, "epoch"), Seq: rapid.Uint32Range(0, 2).Draw(t, "seq")},
		Window:  rapid.Uint8Range(0, 2).Draw(t, "window"),
	}
}

// Marks are in one order, whichever two of three are compared, and survive being
// written: a client that shows the greatest never shows an older snapshot.
func TestMarksAreOrdered(t *testing.T) {
	var earlier Mark
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := markOf(t), markOf(t), markOf(t)
		if a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%v and %v are compared as %d and as %d", a, b, a.Compare(b), b.Compare(a))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%v, %v and %v go in a circle", a, b, c)
		}
		if (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v are compared as %d", a, b, a.Compare(b))
		}
		if back, ok := ParseMark(a.String()); !ok || back != a {
			t.Fatalf("%v is read as %v, %t", a, back, ok)
		}
	})
	// Each comes after the one before.
	for i, later := range []Mark{{Version: 1, Window: 2, Head: Cursor{9, 9}}, {Version: 2}, {Version: 2, Head: Cursor{1, 1}}, {Version: 2, Head: Cursor{1, 2}}, {Version: 2, Window: 1}} {
		if i > 0 && later.Compare(earlier) != 1 {
			t.Errorf("%v does not come after %v", later, earlier)
		}
		earlier = later
	}
	for _, bad := range []string{"", "1", "1.2.3", "1.2.3.4", "1.2.3.0.1", "-1.0.0.0", "1.65536.0.0", "a.b.c.d", "1.2.3. 1"} {
		if m, ok := ParseMark(bad); ok {
			t.Errorf("%q is read as %v", bad, m)
		}
	}
}
