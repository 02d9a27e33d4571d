package sqldb

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockNow locks an open file until it is closed. ErrHeld when it is locked already, by
// another process or through another opening of this one. Windows keeps others from
// reading what is locked, so the lock is on a byte that no file has.
func lockNow(f *os.File) error {
	far := windows.Overlapped{OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &far)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err
}

// openToLock opens what stands for a folder in lockNow. Windows locks no folders, so it
// is a file in it, which stays there, empty.
func openToLock(folder string) (*os.File, error) {
	return os.OpenFile(filepath.Join(folder, "migrating.lock"), os.O_RDWR|os.O_CREATE, 0o600)
}
