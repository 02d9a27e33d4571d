//go:build !unix

package servers

import (
	"errors"
	"os"
)

// Pause stops a process without ending it, where the system can.
func Pause(*os.Process) error { return errors.ErrUnsupported }

// Resume lets a paused process go on, where the system can.
func Resume(*os.Process) error { return errors.ErrUnsupported }
