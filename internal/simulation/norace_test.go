//go:build !race

package simulation

// raced says that the race detector watches.
const raced = false
