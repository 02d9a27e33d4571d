// Package moving moves units between the shards of a campaign, and says when nothing
// is left on any of them.
//
// # Basics
//
// A user belongs to one shard for good, and the stock of a campaign is divided over
// its shards. So a shard may have nothing left while others do. A Mover moves units
// there: ahead of need, on the node with the fleet lease, by the pace at which each shard
// sells; and on every node for the claims that wait on it.
//
// A claim that finds too little at its shard calls Await. It returns when the shard
// has received units, when no shard has enough for it, or when it has waited for
// Config.Wait. Gather brings units together on one shard for a caller with more time:
// a withdrawal, or a payment that came late.
//
// A transfer is a withdrawal that the donor's engine decides. Settling it commands
// the recipient's restock; see dibs.Transfer. The Mover begins transfers, and has
// nothing to do with whether they are right: one that is begun twice, or in vain,
// moves units, and makes none.
//
// # Invariants
//
// Remaining + Moved of a shard is changed by grants, releases and changes of the
// stock, and by no transfer. Their sum over all shards, each at its own moment, is
// what is left of the campaign, as long as nothing else happens in between. Two looks
// at all shards that find every shard's head at the same place show that: at a moment
// between the two, that sum was left, units on their way included. A verdict needs
// both.
//
// # Where things are
//
//	mover   the Mover: its loop, its pools, how a transfer begins
//	await   claims that wait, and what they are told
//	look    looking at all shards of a campaign
//	plan    which shard gives how much to which
//	gather  bringing units together on one shard
package moving
