// Package live holds the campaigns of one node: it brings them into the engine, settles
// what the engine's journal has into the ledger, and takes them out again.
//
// # Basics
//
// New makes a Node of parts, each of which knows those before it: the Registry has
// the campaigns that are held; Lookups reads those that are not; the Settler moves
// journal entries into the ledger; the Loader opens shards and loads them from the
// ledger; Snapshots tells where campaigns stand; the Poller looks at the shards
// and at other nodes' changes; the Outbox carries the ledger's commands to the
// engine. Start takes the campaigns up, Loops run until their contexts end, and Drain
// settles the rest.
//
// The way of a journal entry into the ledger is in settle.go, from top to bottom.
//
// # Invariants
//
// A shard has an epoch in the ledger, the fence. Entries that were read under one epoch
// change nothing under a later one: every batch carries the epoch that this node
// opened, and the ledger refuses it once the epoch was raised.
package live
