package format

import (
	"errors"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// Every name is read as it was written, whatever follows it, and no two names are
// written alike: the scripts compare users by these bytes.
func TestNames(t *testing.T) {
	written := map[string]string{}
	for name, size := range map[string]int{
		"a": 2, strings.Repeat("x", MaxUserLen): 1 + MaxUserLen,
		// Whole numbers take the bytes that they need.
		"1": 2, "255": 2, "256": 3, "12345678": 4, "18446744073709551615": 9,
		// A name that is not written as numbers are stays a text.
		"0": 2, "007": 4, "+5": 3, "18446744073709551616": 21, "1e3": 4,
		"00000000-0000-4000-8000-0123456789ab": 17,
		"00000000-0000-4000-8000-0123456789AB": 37, "00000000-0000-4000-8000_0123456789ab": 37, "g0000000-0000-4000-8000-0123456789ab": 37,
	} {
		b := string(AppendName(nil, name))
		if len(b) != size {
			t.Errorf("%q takes %d bytes, want %d", name, len(b), size)
		}
		if other, ok := written[b]; ok {
			t.Errorf("%q and %q are written alike", name, other)
		}
		written[b] = name
		if got, rest, err := CutName(b + "rest"); got != name || rest != "rest" || err != nil {
			t.Errorf("%q is read as %q, with %q behind it, %v", name, got, rest, err)
		}
		for n := range b {
			if got, _, err := CutName(b[:n]); !errors.Is(err, dibs.ErrCorrupt) {
				t.Errorf("%d bytes of %q are read as %q, %v", n, name, got, err)
			}
		}
	}
	for _, bad := range []string{"\x00", "\xff", string([]byte{uuidTag + 1}) + strings.Repeat("x", 40), string([]byte{numberTag + 2, 0, 7})} {
		if got, _, err := CutName(bad); !errors.Is(err, dibs.ErrCorrupt) {
			t.Errorf("%q is read as %q, %v", bad, got, err)
		}
	}
}
