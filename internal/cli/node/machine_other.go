//go:build !linux && !darwin

package node

// freeSpace is unknown on this system.
func freeSpace(string) (uint64, bool) { return 0, false }

// openFileLimit is unknown on this system.
func openFileLimit() (uint64, bool) { return 0, false }
