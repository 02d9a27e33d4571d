//go:build linux || darwin

package node

import "syscall"

// freeSpace is how many bytes a user may still write where a folder is; false
// when the system does not tell.
func freeSpace(folder string) (uint64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), true
}

// openFileLimit is how many files, connections among them, this process may
// hold open; false when the system does not tell.
func openFileLimit() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	// Go's runtime has raised it as far as it may.
	return limit.Cur, true
}
