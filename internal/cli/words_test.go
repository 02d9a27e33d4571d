package cli

import (
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	words := []string{"create", "list", "show", "publish", "pause", "end", "watch"}
	for word, want := range map[string]string{
		"crate": "create", "pubilsh": "publish", "LIST": "list", "lst": "list", "pub": "publish", "delete": "", "x": "", "": "", "ends": "end", "wacth": "watch",
	} {
		if got := Near(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"ab ab": 0, "ab ba": 1, "abc ab": 1, "abc xyz": 3, "kitten sitting": 3} {
		a, b, _ := strings.Cut(pair, " ")
		if got := distance(a, b); got != want {
			t.Errorf("%s: %d, want %d", pair, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for want, words := range map[string][]string{"a, b or c": {"a", "b", "c"}, "a or b": {"a", "b"}, "a": {"a"}, "": nil} {
		if got := Words(words); got != want {
			t.Errorf("%v: %q, want %q", words, got, want)
		}
	}
}
