//go:build soak

package ci_test

import (
	"testing"
	"time"
)

// pagesWithin is how long the commands of all pages may take.
const pagesWithin = 2 * time.Minute

// TestPagesAreQuick: who changes a page must not wait long to see whether its commands run. A time
// depends on the machine, so the soak alone asks for it.
func TestPagesAreQuick(t *testing.T) {
	compiled(t)
	begun := time.Now()
	t.Run("pages", func(t *testing.T) { runPages(t, true) })
	if took := time.Since(begun); took >= pagesWithin {
		t.Errorf("the pages took %s, and may take %s", took.Round(time.Second), pagesWithin)
	}
}
