package rushes

import (
	"crypto/rand"
	"strings"
)

// newID makes the id of a rehearsal.
func newID() string { return "r-" + strings.ToLower(rand.Text()[:10]) }
