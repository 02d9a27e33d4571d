package main

import (
	"testing"
)

// TestCeilings tells a value that stands from one that has grown, and demands
// the end of exceptions that nothing needs.
func TestCeilings(t *testing.T) {
	b := built{}.files("lab", 42, nothing).file("events/e.go", "import _ \"example.com/dibs/orders\"\n")
	h := b.house(t)
	climb := "events imports orders: events stands below orders"
	expect(t, h.check([]ceiling{{files, "lab", 42}}, []string{climb}))
	expect(t, h.check([]ceiling{{files, "lab", 50}}, []string{climb}))
	expect(t, h.check([]ceiling{{files, "lab", 41}}, []string{climb}), "lab: 42 files: 41 stood, the limit is 40")
	expect(t, h.check([]ceiling{{files, "lab", 42}, {names, "lab", 300}, {files, "gone", 50}, {comments, everywhere, 12}}, []string{climb, "a imports b: c"}),
		"lab: 0 exported names: within the limit of 260: delete its line in ceilings",
		"all packages: 73 percent of comment lines: within the limit of 16: delete its line in ceilings",
		"gone: there is no such package: delete or rename its line in ceilings (files)",
		`"a imports b: c" is gone: delete its line in standingImports`)
}
