package simulation

import (
	"slices"
	"strings"
	"testing"
)

// TestBadInput refuses what is no seed, no number of seeds, and no fault.
func TestBadInput(t *testing.T) {
	for _, c := range []struct{ seed, seeds, wants string }{
		{"noon", "", `SEED="noon" is no seed`},
		{"-1", "", `SEED="-1" is no seed`},
		{"1.5", "", `SEED="1.5" is no seed`},
		{"18446744073709551616", "", "is no seed"},
		{"0", "0", `SEEDS="0" is no number of seeds`},
		{"", "many", `SEEDS="many" is no number of seeds`},
		{"", "10000001", "is no number of seeds"},
	} {
		if _, err := ParseRange(c.seed, c.seeds, 1); err == nil || !strings.Contains(err.Error(), c.wants) {
			t.Errorf("SEED=%s SEEDS=%s: %v, want %s", c.seed, c.seeds, err, c.wants)
		}
	}
	for _, c := range []struct {
		seed, seeds string
		want        Range
	}{
		{"", "", Range{Count: 7}},
		{"12", "", Range{First: 12, Count: 1, Told: true}},
		{"12", "3", Range{First: 12, Count: 3}},
		{"", "3", Range{Count: 3}},
	} {
		if r, err := ParseRange(c.seed, c.seeds, 7); err != nil || r != c.want {
			t.Errorf("SEED=%s SEEDS=%s: %+v %v, want %+v", c.seed, c.seeds, r, err, c.want)
		}
	}
	if _, err := Plant("Nonsense"); err == nil || !strings.Contains(err.Error(), "Unfenced, ") {
		t.Errorf("a fault that there is not: %v", err)
	}
	if !slices.Contains(Faults(), "Unfenced") {
		t.Errorf("the faults: %v", Faults())
	}
}
