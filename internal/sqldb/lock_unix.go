//go:build unix

package sqldb

import (
	"errors"
	"os"
	"syscall"
)

// lockNow locks an open file or folder until it is closed. ErrHeld when it is locked
// already, by another process or through another opening of this one.
func lockNow(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// openToLock opens what stands for a folder in lockNow: the folder itself, so that no
// file is left behind.
func openToLock(folder string) (*os.File, error) { return os.Open(folder) }
