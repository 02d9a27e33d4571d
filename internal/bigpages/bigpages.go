// Package bigpages gives memory that is read at random places. In pages of the
// usual size such a read costs half as much again, since the processor has to
// look up first where the page is.
package bigpages

// Words returns n words of zeroes, in big pages as far as the system has them.
func Words(n int) []uint32 {
	words := make([]uint32, n)
	wish(words)
	return words
}
