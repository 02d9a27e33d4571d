//go:build !linux && !darwin

package node

// freeSpace is not known here.
func freeSpace(string) (uint64, bool) { return 0, false }

// openFileLimit is not known here.
func openFileLimit() (uint64, bool) { return 0, false }
