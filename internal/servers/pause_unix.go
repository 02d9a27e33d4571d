//go:build unix

package servers

import (
	"os"
	"syscall"
)

// Pause stops a process without ending it, until Resume.
func Pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func Resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
