//go:build !unix

package measure

import "time"

// ownCPU knows only Unix.
func ownCPU() (time.Duration, bool) { return 0, false }
