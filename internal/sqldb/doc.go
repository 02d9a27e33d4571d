// Package sqldb runs transactions on SQLite, MySQL, MariaDB and PostgreSQL for
// packages that keep tables there. It knows connections and databases; it knows
// no table of its users.
//
// # Basics
//
// A [Schema] holds the migrations of a set of tables. [Open] connects to an
// address, checks that the server can be trusted, and returns a [DB]. A DB has
// connections for reading and, apart from them, connections for writing.
// [DB.Write] and [DB.Snapshot] run a function in a transaction, [DB.Read] runs
// a function that reads by one statement. The function gets a [Session], on
// which every statement is prepared once for each connection.
//
// # What a transaction promises
//
// Write repeats a transaction that the database ended in favour of another one
// (a deadlock, a lost conflict), a bounded number of times; the function must
// therefore start afresh each time. Every call has a deadline (see [Config]).
// After an error nothing was changed, except when [Fault] is
// FaultUnknownEffect: then the commit failed, and only the database can tell
// whether it happened.
//
// # What differs between databases
//
// [Dialect] holds it. Statements are written once, with question marks as
// placeholders, and end in Dialect's words for row locks. Users keep statements
// of which a database needs a form of its own in tables by [Kind].
//
// # Connections
//
// A lost connection is replaced at its next use. A server that became read-only
// is left, so that the next connection looks for the one that takes writes. A
// schema with Owned set can be locked by one process at a time; the lock ends
// with its process.
//
// # Caveats
//
// SQLite has one writer at a time and needs a local disk: a network file system
// breaks its locks. A server's locks belong to one connection of one server, so
// poolers that share connections between transactions are refused, and Galera
// clusters are refused for a schema that is Owned.
package sqldb
