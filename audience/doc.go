// Package audience knows who may claim: the users of an imported list, or those
// who follow a merchant. Lists of ten million users fit in 64 MiB, and nobody is
// let in by mistake.
//
// # Basics
//
// A user has a print of 64 bits. Of ids that are short (up to ten characters, or
// numbers of up to eighteen digits) it is another way to write the id, so that
// no two share one; of longer ids it is 62 bits of a keyed hash. A [Set] keeps
// prints in order, without the bits that their places tell: six bytes a user for
// ten million. Where a print may be shared, the id itself is compared, in a file
// that has no name and lies beside the process.
//
// Lists are kept in the ledger, in parts that are in the order of the prints, so
// that a node loads one from end to end without sorting. An import counts as a
// whole or not at all. A [Keeper] loads what campaigns need, notices new
// versions, and is the dibs.Gate that asks.
package audience
