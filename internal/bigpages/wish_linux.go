package bigpages

import (
	"syscall"
	"unsafe"
)

const (
	// pageSize is that of big pages on the processors that matter; where it is
	// another one, less of the memory has them.
	pageSize = 2 << 20
	// collapse is MADV_COLLAPSE, of Linux 6.1.
	collapse = 25
)

// wish asks for big pages. A refusal is no error.
func wish(words []uint32) {
	memory := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(words))) % pageSize)
	size := (len(memory) - skip) / pageSize * pageSize
	if size <= 0 {
		return
	}
	memory = memory[skip : skip+size]
	if syscall.Madvise(memory, syscall.MADV_HUGEPAGE) == nil {
		// Memory that was in use before is in small pages still, unless it is put together.
		_ = syscall.Madvise(memory, collapse)
	}
}
