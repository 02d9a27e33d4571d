//go:build !soak

package rehearsal_test

// oneUserPresses is a fifth of the articles' load; make soak has all of it.
const oneUserPresses = 2_000
