package remote

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// FuzzApply: whatever a file of campaigns holds, it is refused as a whole, or is campaigns that have each an id of their
// own: without one, a second run would make a second campaign.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		"", "id: a\n", "- id: a\n- id: b\n", "id: a\n---\nid: a\n", "id: a\n---\n", `{"id":"a","stock":{"units":5},"state":"published"}`, "id: a\ntitel: x\n", "id: [a]\n", "7", "- - id: a\n",
		"a: &x [1]\nid: *x\n", "? [1, 2]\n: 3\n", "id: a\nstarts_at: 2026-12-01T04:00:00Z\n", "id: !!binary aGk=\n", "&a [*a]\n", "id: ~\n", "<<: {id: a}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := readWanted(strings.NewReader(text), "-")
		if (len(list) == 0) == (err == nil) {
			t.Fatalf("%q is %v and %v", text, list, err)
		}
		seen := map[string]bool{}
		for _, w := range list {
			if !dibs.IsID(w.ID) || seen[w.ID] {
				t.Errorf("%q has the campaign %q", text, w.ID)
			}
			seen[w.ID] = true
		}
	})
}
