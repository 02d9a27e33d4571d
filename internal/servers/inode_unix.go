//go:build unix

package servers

import (
	"io/fs"
	"syscall"
)

// inodeOf returns the number by which the library of shim/disk.c notes a file.
func inodeOf(file fs.FileInfo) uint64 { return file.Sys().(*syscall.Stat_t).Ino }
