//go:build unix

package measure

import (
	"syscall"
	"time"
)

// ownCPU is the processor time of this process, which is the client; false when the
// system does not say.
func ownCPU() (time.Duration, bool) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, false
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), true
}
