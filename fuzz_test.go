package dibs

import (
	"cmp"
	"strings"
	"testing"
)

// FuzzClaimID: whatever stands in an address, what is read as a claim id is the id of one
// place, and that place's id is read as the same place.
func FuzzClaimID(f *testing.F) {
	ids := NewClaimIDs(plain{})
	for _, seed := range []string{"", "0000000000000000", "7K3M9QX2B4TD6RWA", "7k3m9qx2b4td6rwa", "oOiIlL0000000000", "7K3M9QX2B4TD6RW", "7K3M9QX2B4TD6RWU", "\xff\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, err := ids.Decode(id)
		if err != nil {
			return
		}
		again := ids.Encode(p)
		if back, err := ids.Decode(again); err != nil || back != p {
			t.Errorf("%q is %v, whose id is %q: %v, %v", id, p, again, back, err)
		}
		people := strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(id))
		if people != again {
			t.Errorf("%q is read as %q", id, again)
		}
	})
}

// FuzzMark: a client's Last-Event-ID is a mark that is written as it was read, or none.
func FuzzMark(f *testing.F) {
	for _, seed := range []string{"", "3.1.200.1", "0.0.0.0", "9223372036854775807.65535.4294967295.3", "1.2.3", "1.2.3.4", "-1.0.0.0", "01.1.1.1", "+1.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := ParseMark(text)
		if !ok {
			return
		}
		// Zeros may lead each number.
		parts := strings.Split(text, ".")
		for i, part := range parts {
			parts[i] = cmp.Or(strings.TrimLeft(part, "0"), "0")
		}
		if back, ok := ParseMark(m.String()); !ok || back != m || m.Version < 0 || m.String() != strings.Join(parts, ".") {
			t.Errorf("%q is %v, then %v", text, m, back)
		}
	})
}

// FuzzPublicValue: of all texts that a public value may be without an announced format, each
// has a meaning of its own, and no second spelling is taken beside it: an operator who knows
// the value cannot choose among draws.
func FuzzPublicValue(f *testing.F) {
	for _, seed := range []string{"3888.6", "3,888.60", "3 888.6", "-0", "00ffa1b200ffa1b200ffa1b200ffa1b2", "3 14 15", "３８８８.6", "1e3", "", "0.10", "١٢٣", "\u00a0 1"} {
		f.Add(seed, "")
		f.Add(seed, "decimal:1")
	}
	f.Fuzz(func(t *testing.T, value, format string) {
		room := &RoomSpec{Mode: Lottery, PublicValue: "a value", PublicValueFormat: format}
		if formatProblem(format).EN != "" || (&PublicValueSpec{Value: value}).Faults(room) != nil {
			return
		}
		for i := range len(value) {
			if c := value[i]; !strings.ContainsRune("0123456789abcdef.- ", rune(c)) {
				t.Fatalf("%q is taken in the format %q", value, format)
			}
		}
		// Another way to write the same number.
		for _, other := range []string{"+" + value, "0" + value, value + " ", " " + value, value + ".", strings.ToUpper(value), strings.ReplaceAll(value, ".", ",")} {
			if format == "" && other != value && simplest(other) == value && (&PublicValueSpec{Value: other}).Faults(room) == nil {
				t.Errorf("%q is taken beside %q", other, value)
			}
		}
	})
}

// FuzzParseLimit: whatever a setting says, what is read as a limit is a valid one.
func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"20/s", "100/1m,burst=300", "1000/s,leaky,burst=200,wait=500ms", "1/0s", "9223372036854775807/1ns", "/", "1/s,burst=-1", "1/s,wait=1h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit("user", text)
		if (l == nil) == (err == nil) {
			t.Fatalf("%q is %v and %v", text, l, err)
		}
		if err == nil && (l.Rate < 1 || l.Every < 0 || l.Burst < 0 || len(l.Faults("")) > 0) {
			t.Errorf("%q is %+v", text, l)
		}
	})
}
