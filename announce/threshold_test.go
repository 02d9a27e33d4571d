package announce

import (
	"fmt"
	"testing"
)

// In the usual distribution 99 % of the merchants have up to 2,000 followers.
func TestProposedThreshold(t *testing.T) {
	sizes := [][2]int64{{1, 40}, {35, 200}, {900, 500}, {1_958, 250}, {2_400, 8}, {1_000_000, 2}}
	for _, test := range []struct {
		cover float64
		want  string
	}{
		{99, "2000 99 10"}, {99.5, "2400 99.8 2"}, {100, "1000000 100 0"}, {4, "1 4 960"}, {50, "900 74 260"},
	} {
		v := proposal(sizes, test.cover, 1_000)
		if got := fmt.Sprint(v.Proposed, v.Covered, v.Above); got != test.want {
			t.Errorf("%v %%: %s, want %s", test.cover, got, test.want)
		}
		if v.Merchants != 1000 || v.Most != 1_000_000 || v.CoveredNow != 74 {
			t.Errorf("%+v", v)
		}
		sum := int64(0)
		for _, s := range v.Sizes {
			sum += s.Merchants
		}
		if got := fmt.Sprint(v.Sizes); sum != v.Merchants || got != "[{1 40} {100 200} {1000 500} {10000 258} {1000000 2}]" {
			t.Errorf("the sizes are %s", got)
		}
	}
	if v := proposal(nil, 99, 5); v.Proposed != 0 || v.Merchants != 0 || v.Sizes == nil {
		t.Errorf("without merchants: %+v", v)
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[int64]int64{1: 1, 99: 99, 100: 100, 101: 110, 1_958: 2_000, 1_900: 1_900, 99_100: 100_000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
