package web

import "testing"

// The library huma names members in a way of its own; answers have JSON pointers.
func TestPointers(t *testing.T) {
	for location, want := range map[string]string{
		"body": "", "body.title": "/title", "body.stock.items[3]": "/stock/items/3", "query.limit": "/limit", "path.id": "/id",
	} {
		if got := pointerOf(location); got != want {
			t.Errorf("%s: %q, want %q", location, got, want)
		}
	}
}
