//go:build !linux

package bigpages

func wish([]uint32) {}
