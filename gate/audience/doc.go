// Package audience knows who may claim: the users of an imported list, or those
// who follow a merchant. Lists of ten million users fit in 64 MiB, and nobody is
// let in by mistake.
//
// # Basics
//
// A user has a print of 63 bits. Of ids that are short (up to ten characters, or
// numbers of up to eighteen digits) it is another way to write the id, so that
// no two share one; of longer ids it is a hash with a key that is drawn for each
// list. A [Set] keeps prints without
// the bits that their places tell, in lines of 64 bytes, so that memory is read
// at one place to look for a user. A map of Go in its place takes four to fourteen
// times the memory, and two to four times the time (BenchmarkHas).
//
// Lists are kept in the ledger, in parts that are in the order of the prints, so
// that a node loads one from end to end without sorting; one that is in another
// order it sorts. An import counts as a whole or not at all. A [Keeper] loads
// what campaigns need, notices new versions, and is the dibs.Gate that asks.
package audience
