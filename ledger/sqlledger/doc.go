// Package sqlledger keeps the ledger, the lasting truth of dibs, in an SQL
// database, and the embedded engine's journal in a table of its own.
//
// # Basics
//
// [Open] opens the ledger at an address, in a SQLite file, in MySQL or MariaDB,
// or in PostgreSQL, and returns a [Ledger]. [OpenJournal] opens the journal
// there and returns a [JournalTable]. An older or a newer schema is refused,
// unless Options.Migrate asks for migration.
//
// The ledger's tables stand in groups, and each group has a type: [Catalog],
// [Stock], [Settlement], [Claims], [RegularOrders], [Funds], [Feed],
// [Webhooks], [Audiences], [Announcements], [Access], [RevokedTokens],
// [ConsoleSessions], [PendingActs], [Erasures], [Audits], [Rooms],
// [Deployments]. A Ledger embeds them all. The comment of a type says what holds
// in its tables between two transactions, and in which order it takes locks.
//
// # Transactions
//
// Every method is one transaction, unless its comment says otherwise. It is
// safe for concurrent use and honours its context. A database that is away,
// busy or full is an *Error of Unavailable; its Effect is EffectUnknown when
// the commit failed and may have happened, else EffectNone.
//
// Settling is exactly once: the shard's committed position moves by
// compare-and-set in the transaction that writes the claims, so that two
// settlers, a crash or a replay change nothing.
//
// Transactions that lock rows of several tables take them in one order, so that
// no two wait for each other: claims (by position), the shard's row in
// positions, the campaign, the product, accounts (by kind and owner), the
// feed's head, sinks, endpoints, deliveries. The feed's head comes late since
// everything that is told waits for it.
//
// # Databases
//
// Statements are written once, with question marks. Those of which a database
// needs a form of its own are in forms.go. Ids compare byte by byte, times are
// milliseconds and amounts whole numbers everywhere, so that no collation, time
// zone or mode of a server matters. Settings that do matter are set on each connection,
// or checked at opening (internal/sqldb).
//
// # Servers
//
// A lost connection is replaced at its next use. A transaction that the
// database ended in favour of another one is run again, a bounded number of
// times. The owner of a journal holds a lock that ends with its connection, and
// a generation that every append checks.
//
// # Caveats
//
// SQLite has one writer: loading a shard with millions of claims makes other
// writes of the ledger wait for it. The journal is a file of its own for that
// reason, and no claim waits for the ledger. SQLite needs a local disk; a
// network file system breaks its locks.
//
// A server's locks belong to one connection of one server. A pooler that shares
// connections between transactions is refused, and a cluster that is written to
// in several places is refused for the journal. A killed owner's lock is free
// at once; that of a machine that vanished without a word, within a minute.
package sqlledger
