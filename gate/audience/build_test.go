package audience

import (
	"strings"
	"testing"
)

// TestSetIsExact builds sets of many sizes: who is in them is found, and nobody
// else is, however much alike.
func TestSetIsExact(t *testing.T) {
	l := ledger(t)
	for _, n := range []int{0, 1, 2, 15, 16, 17, 300, 5000, 30_000} {
		in := names(n)
		got, err := Import(t.Context(), l, "vip", strings.NewReader("user\n"+strings.Join(in, "\n")), nil)
		must(t, err)
		if got.Users != int64(n) || got.Duplicates != 0 {
			t.Fatalf("%d users: %+v", n, got)
		}
		set, err := Load(t.Context(), l, &got.Audience)
		must(t, err)
		for _, u := range in {
			if !set.Has(u) {
				t.Fatalf("of %d users %s is missing", n, u)
			}
			for _, other := range []string{u + "x", "0" + u, u[:len(u)-1], strings.ToUpper(u) + "."} {
				if set.Has(other) && other != "" && !contains(in, other) {
					t.Fatalf("of %d users %q is there, who is not", n, other)
				}
			}
		}
	}
}

func contains(in []string, user string) bool {
	for _, u := range in {
		if u == user {
			return true
		}
	}
	return false
}
