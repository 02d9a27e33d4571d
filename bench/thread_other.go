//go:build !linux

package main

import "time"

// threadTime is the CPU time of the whole process, since only Linux tells that of a thread. It
// includes the garbage collector's, so the figures are higher than on Linux.
func threadTime() time.Duration { return cpuTime() }
