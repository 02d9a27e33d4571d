// Package sqlledger keeps the ledger, the lasting truth of dibs, in an SQL
// database, and the embedded engine's journal in a table of its own.
//
// # Basics
//
// [Open] opens the ledger at an address, in a SQLite file, in MySQL or MariaDB,
// or in PostgreSQL, and returns a [Ledger], which implements dibs.Ledger.
// [OpenJournal] opens the journal there and returns a [JournalTable], which
// implements dibs.JournalStore. An older or a newer schema is refused, unless
// Options.Migrate asks for migration.
//
// Every method of the Ledger is one transaction. Settling is exactly once: the
// shard's committed position moves by compare-and-set in the transaction that
// writes the claims, so that two settlers, a crash or a replay change nothing.
//
// # Dialects
//
// What differs between databases (placeholders, the form of multi-row writes,
// the classes of errors) is in a dialect; everything else is written once. Ids
// compare byte by byte, times are milliseconds and amounts whole numbers
// everywhere, so that no collation, time zone or mode of a server matters;
// what does matter is set on each connection, or checked at opening.
//
// # Servers
//
// A connection that was lost is replaced by itself; a transaction that the
// database ended in favour of another one is run again, a bounded number of
// times. Who owns a journal holds a lock that ends with its connection, and a
// generation that every append checks.
//
// # Caveats
//
// SQLite has one writer: loading a shard with millions of claims makes other
// writes of the ledger wait for it. The journal is a file of its own for that
// reason, and no claim waits for the ledger. SQLite needs a local disk; a
// network file system breaks its locks.
//
// A server's locks belong to one connection of one server: a pooler that shares
// connections between transactions, and a cluster that is written to in several
// places, have to be kept away from the journal. A killed owner's lock is free
// at once; that of a machine that vanished without a word, within a minute.
package sqlledger
