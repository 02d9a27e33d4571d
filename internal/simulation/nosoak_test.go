//go:build !soak

package simulation

// soaked says that the long campaigns run.
const soaked = false
