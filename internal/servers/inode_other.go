//go:build !unix

package servers

import "io/fs"

// inodeOf returns 0, which no file has: the library that notes syncs is for Unix, and
// PowerLoss then finds that nothing was noted.
func inodeOf(fs.FileInfo) uint64 { return 0 }
