// Package leaks finds goroutines that a package's tests have left behind, with patience:
// on a busy machine a connection that was closed ends a moment later.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end after the last test.
const patience = time.Minute

// Find returns an error that names the goroutines which are left when nothing more ends
// within patience.
func Find(options ...goleak.Option) error { return find(patience, options...) }

func find(patience time.Duration, options ...goleak.Option) error {
	for begun := time.Now(); ; {
		err := goleak.Find(options...)
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

// Main runs a package's tests and ends the process; it fails when they leave goroutines
// behind.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := Find(options...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
