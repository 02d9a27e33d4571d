//go:build !linux

package main

import "time"

// threadTime is the CPU time of the process: of a thread only Linux tells it.
func threadTime() time.Duration { return cpuTime() }
