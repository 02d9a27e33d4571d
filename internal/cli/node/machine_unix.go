//go:build linux || darwin

package node

import "syscall"

// freeSpace returns how many bytes a user may still write to the disk of a folder;
// false when the system does not say.
func freeSpace(folder string) (uint64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), true
}

// openFileLimit returns how many files this process may have open, connections among
// them; false when the system does not say.
func openFileLimit() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	// Go's runtime has raised the soft limit as far as the hard one allows.
	return limit.Cur, true
}
