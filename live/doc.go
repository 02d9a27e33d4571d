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
// In the code t is a Shard, l the Campaign that holds it, and c its definition. What is stored
// says in which state a shard is on this node:
//
//   - away: the Registry does not have it. An admission of its campaign may be under way, or
//     have failed and wait for its next attempt (Loader.admissions).
//   - open: the Registry has it, and this node knows the fence under which it reads and
//     settles (progress.fence). While there is something to settle, one of the nodes does
//     it, by a lease (Shard.Settles).
//   - closed: the Registry has it, and it is being opened again or waits for the next attempt
//     (reload). The fence is 0 when another node has raised the epoch, or the shard's server
//     was away from the start: nothing is settled here then. When only the engine does not
//     have it open, what the journal still has of the same epoch is settled.
//
// Beside that, a campaign can be halted: journal and ledger do not fit together
// (Loader.halts). It is refused here until they fit again, after dibs verify --repair for
// instance.
//
// What usually leads from one to another:
//
//	away   -> open    Admit loads a campaign that sells. Recall loads one that is over, for a
//	                  late payment or for what is left of a red packet. Both open the shards:
//	                  attach joins what another node has opened, and else Load raises the
//	                  epoch and brings the shard from the ledger into the engine. A shard
//	                  whose server is away is closed at first, beside others that are open.
//	open   -> closed  fencedOff: the epoch was raised, or the engine and the ledger tell that
//	                  one of them went back. notOpen: the engine does not have the shard,
//	                  since its server was emptied or replaced, or it was halted there.
//	closed -> open    reopen, in the background, with pauses after failures.
//	open   -> open    loadAgain, in a new epoch: the engine does not agree with the ledger.
//	open   -> away    halt, when the Settler meets a gap in the journal. The next attempt to
//	                  open the shard finds the gap too, and haltFor closes it in the engine:
//	                  no node grants anything of it then.
//	open   -> away    retire, some minutes after the end, once all is settled: the engine
//	                  forgets the shard, and notOpen lets the other nodes follow.
//
// What a campaign that is over still has in the journal is settled without opening it:
// settleEnded finds such shards at the start and again while some could not be settled,
// SettleTails settles them, and judgeAgain notes that another node has done so. Poller.leave
// has the engine forget those that are live nowhere.
//
// # Invariants
//
// A shard has an epoch in the ledger, the fence. Entries that were read under one epoch
// change nothing under a later one: every batch carries the epoch that this node
// opened, and the ledger refuses it once the epoch was raised.
package live
