package main

import (
	"syscall"
	"time"
)

// threadTime is the CPU time of this thread, from which its goroutine must not be
// moved away.
func threadTime() time.Duration { return usedBy(syscall.RUSAGE_THREAD) }
