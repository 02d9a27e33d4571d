package main

import (
	"syscall"
	"time"
)

// threadTime is the CPU time of this thread. The caller locks its goroutine to the thread: on
// another one the difference of two readings means nothing.
func threadTime() time.Duration { return usedBy(syscall.RUSAGE_THREAD) }
