//go:build race

package simulation

// raced says that the race detector watches, which makes a run several times as
// slow.
const raced = true
