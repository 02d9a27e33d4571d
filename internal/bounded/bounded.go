// Package bounded keeps what may be forgotten: as many entries as it is told, and those
// that are asked for most.
package bounded

import "github.com/maypok86/otter/v2"

// Cache is a cache with a bound. It is safe for concurrent use.
//
// It hides the library behind an interface: where a struct has an otter.Cache in it, each package
// that knows the struct, if only through others, compiles the thousand functions of that cache anew.
type Cache[K comparable, V any] interface {
	// GetIfPresent returns what is kept under a key, and whether something is.
	GetIfPresent(key K) (V, bool)
	// Set keeps a value under a key. It returns the value that is kept, and whether there was none before.
	Set(key K, value V) (V, bool)
	// Invalidate forgets a key. It returns what was kept, and whether something was.
	Invalidate(key K) (V, bool)
	// StopAllGoroutines ends what works in the background, and reports whether something did.
	StopAllGoroutines() bool
}

// New returns a cache for a number of entries.
func New[K comparable, V any](most int) (Cache[K, V], error) {
	return otter.New(&otter.Options[K, V]{MaximumSize: most})
}
