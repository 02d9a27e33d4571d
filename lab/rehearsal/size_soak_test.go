//go:build soak

package rehearsal_test

// oneUserPresses is the articles' load.
const oneUserPresses = 10_000
