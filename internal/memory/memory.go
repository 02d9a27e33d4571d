// Package memory tells how much memory the process may take and has, and lets the
// garbage collector rest where there is plenty.
package memory

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// containerLimit is where Linux says how much memory a container may have.
const containerLimit = "/sys/fs/cgroup/memory.max"

// Limit is how much memory the process may take, 0 for no bound.
func Limit() int64 {
	if told := debug.SetMemoryLimit(-1); told < math.MaxInt64 {
		return told
	}
	text, err := os.ReadFile(containerLimit)
	if err != nil {
		// Not a container, or not Linux: there is no bound to know.
		return 0
	}
	return parseLimit(string(text))
}

// parseLimit reads the file of a container's bound: a number, or `max` for none.
func parseLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Used is what the Go runtime has of the system and has not given back.
func Used() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
