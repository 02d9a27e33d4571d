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
// # A shard on a node
//
// In the code t is a Shard, l the Campaign that holds it, and c its definition. A shard is in
// one of these states on each node; what is stored says in which:
//
//   - away: the Registry does not have it. An admission of its campaign may be under way, or
//     have failed and wait for its next attempt (Loader.admissions).
//   - open: the Registry has it, and this node knows the fence under which it reads and
//     settles (progress.fence). One of the nodes settles it, by a lease (Shard.Settles).
//   - closed: the Registry has it, and nothing is settled here: another node has raised the
//     epoch (progress.fence is 0), or the engine does not have it open (Shard.Seen is nil).
//     It is being opened again, or waits for the next attempt (reload).
//   - halted: journal and ledger do not fit together (Loader.halts). The campaign is away, and
//     refused here until they fit again, after `dibs verify --repair` for instance.
//
// What leads from one to another:
//
//	away   -> open    Admit loads a campaign that sells, Recall one that is over, for a late
//	                  payment. Both open each shard: attach joins what another node has
//	                  opened, and else Load raises the epoch and brings the shard from the
//	                  ledger into the engine.
//	open   -> closed  fencedOff: the engine has a later epoch. notOpen: the engine does not
//	                  have the shard, since its server was emptied or replaced.
//	closed -> open    reopen, in the background, with pauses after failures; loadAgain for a
//	                  shard that is open and does not agree with the ledger.
//	open   -> halted  halt, when the Settler meets a gap in the journal. The next attempt to
//	                  open the shard finds the gap too, and haltFor closes it in the engine:
//	                  no node grants anything of it then.
//	halted -> open    Admit, once the journal fits again. Of a campaign that is over, SettleTails
//	                  settles the rest; judgeAgain notes that another node has done so.
//	open   -> away    retire, some minutes after the end, once all is settled: the engine
//	                  forgets the shard. Poller.leave does it for shards that no node has open.
//
// What a campaign that is over still has in the journal is settled without opening it:
// settleEnded finds such shards at the start, SettleTails settles them.
//
// # Invariants
//
// A shard has an epoch in the ledger, the fence. Entries that were read under one epoch
// change nothing under a later one: every batch carries the epoch that this node
// opened, and the ledger refuses it once the epoch was raised.
package live
