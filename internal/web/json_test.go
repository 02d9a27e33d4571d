package web

import (
	"encoding/json"
	"testing"
)

// FuzzString checks that a string written by hand reads back as encoding/json
// would have it.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "plain", "quote \" and \\", "\x00\x1f\n\t", "中文", "\xff\xfe", "\u2028", "</script>", "🎟"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &want); err != nil || got != want {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
	})
}
