// Package sqlledger keeps the ledger, the lasting truth of dibs, in an SQL
// database, and the embedded engine's journal in a table of its own.
//
// # Basics
//
// [OpenSQLite] opens a ledger file and returns a [Ledger], which implements
// dibs.Ledger. [OpenSQLiteJournal] opens the journal's file and returns a
// [JournalTable], which implements dibs.JournalStore. A file that holds an older
// or a newer schema is refused, unless Options.Migrate asks for migration.
//
// Every method of the Ledger is one transaction. Settling is exactly once: the
// shard's committed position moves by compare-and-set in the transaction that
// writes the claims, so that two settlers, a crash or a replay change nothing.
//
// # Dialects
//
// What differs between databases (placeholders, the form of multi-row writes,
// the classes of errors) is in a dialect; everything else is written once.
//
// # Caveats
//
// SQLite has one writer: loading a shard with millions of claims makes other
// writes of the ledger wait for it. The journal is a file of its own for that
// reason, and no claim waits for the ledger. SQLite needs a local disk; a
// network file system breaks its locks.
package sqlledger
