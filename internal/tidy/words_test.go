package tidy

import (
	"testing"
)

// TestWords finds faults of the words that have no place in the project.
func TestWords(t *testing.T) {
	find(t, []violation{
		{"machine paths", file("docs/A.md", "see "+workDir+"x\n\nand "+rootDir+"y\n"), []string{"docs/A.md:1: names " + workDir, "docs/A.md:3: names " + rootDir}},
		{"machine path in CI", file(".ci/run", "cd "+workDir+"main\n"), []string{".ci/run:1: names " + workDir}},
		{"registry", file("docs/A.md", host+"\n"), []string{"docs/A.md:1: names " + host}},
		{"unfinished", file("lock/a.go", "package lock\n\nvar a = 1 // "+later+": b\n\nvar b = \""+undone+"\"\n"), []string{"lock/a.go:3: says \"" + later, "lock/a.go:5: says \"" + undone}},
		{"excuses", file("lock/a_test.go", "package lock\n\n// A "+hack+".\nvar a = 1 // Good enough "+forNow+".\n"), []string{"lock/a_test.go:3: says \"" + hack, "lock/a_test.go:4: says \"" + forNow}},
	})
}
