package node

import (
	"slices"
	"testing"
)

func TestOpenerFor(t *testing.T) {
	const at = "http://127.0.0.1:1/console/#code=x"
	for goos, want := range map[string][]string{
		"linux": {"xdg-open", at}, "freebsd": {"xdg-open", at}, "darwin": {"open", at}, "windows": {"rundll32", "url.dll,FileProtocolHandler", at},
	} {
		if got := openerFor(goos, at); !slices.Equal(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
	if len(openers["windows"]) != 2 {
		t.Errorf("an address was added to the command of every call: %q", openers["windows"])
	}
}
