// Package redisengine is the engine on Redis: Lua scripts, in internal/conn/lua, decide
// claims, one step each, and every process that connects decides on the same shards.
//
// # Basics
//
// Claims of a shard that arrive while calls are under way gather and are
// decided by the next call, up to 1,024 at once: no timer, and no delay when
// nothing else is going on. A call decides repeat, state and window by Redis'
// clock, stock, limit, and writes holdings, stock, places and one journal entry
// for all of its grants; all checks come before the first write.
//
// All keys of a shard have the tag {campaign:shard} and are declared:
//
//	meta      hash    state, place of the last entry, counts, definition
//	holdings  hash    bucket → its users' claims, packed
//	places    hash    120 places a field → the bucket of each, and its time
//	journal   stream  id epoch-seq of a batch's last entry → the batch
//	free      list    items that no claim has, number and value
//	issued    hash    place → the items of its claim
//	refs      set     stock changes that were counted
//	end       string  where the journal of a retired shard ended
//	settler   string  the process that settles and loads the shard; a lease, and as
//	                  dibs:{0:0}:settler that of the process with the fleet lease
//
// Those of campaigns that share a limit per product have the tag
// {product/id:shard} and their number behind it, so that they are in one slot with two
// keys of the product: counted, a hash of the campaigns whose claims count, and units,
// a hash of what each user holds of each. A grant and a release write there in the
// same step. A campaign counts by the records of one epoch: a load writes the next ones
// beside them, and the step that opens the shard makes them count. So a campaign counts
// while it is loaded again, and once it was retired, for as long as another one is
// open. On a run of the server where not all that the ledger knows were opened, the
// others grant nothing.
//
// dibs:state:{campaign:shard} is written when what a shard refuses every user
// with may have changed. dibs:shards, a hash, lists the shards that were opened.
// Where meta is missing the shard is not open, and has to be loaded from the
// ledger; nothing ever starts anew because a key is gone.
//
// # Lost answers
//
// Nothing is sent twice unseen. Each batch has a token and a deadline on Redis'
// clock, after which the script refuses it. When an answer is lost, the journal
// is searched for the token: what is there was granted, and once the deadline
// has passed, what is not there was not and never will be, and is decided
// again. Callers receive the effect unknown only when Redis does not
// answer for Config.Patience, or has lost what it had.
//
// # Lost history
//
// A shard is open on the run of the server on which it was opened. A server
// that was restarted, or a replica that was promoted, may have less history,
// and the ledger may be ahead of it: there the shard is not open, for every
// process, until one has loaded it in a new epoch. The same holds for a server
// that was demoted and promoted again while it ran. Every call also carries the
// highest place that its process has seen of the shard. A Redis that is behind
// it has lost history in another way, and the shard is shut for all.
//
// # A full Redis
//
// A Redis that has no memory left (maxmemory, noeviction) refuses grants, restocks
// and new campaigns, with no effect. The steps that free memory need none: leases,
// settling, trimming, ending and retiring a campaign, and loading one again, which takes
// what the shard had before. So memory comes back when the journal is trimmed, whichever
// process died meanwhile; see even_when_full in lua/shard.lua, which holds on Redis
// 6.2 and all later ones.
//
// # Broken loads
//
// A load may be broken off at any step. While the campaign goes on, the next load
// takes its place. When it is over, Retire takes away what is left, once the lease
// of the loader has ended. A loader that was only slow finds its token gone. Each
// shard is on the list before and after its keys come into being, with a number
// that never comes again, so that an open shard is always listed. A load that came too
// late for that, or whose list was lost, is found by nobody: until a shard is open its
// keys expire, after a day, and the meta hash first.
//
// # Damage
//
// A part of the journal that cannot be read is known from what the shard holds
// beside it: each place has its claim. A place without one is an entry that the
// ledger sets aside, so that the campaign goes on and Verify says what is wrong.
// Only while the shard is not open, or where an epoch begins, nothing takes the
// journal's place, and the campaign waits for an administrator.
//
// # Refusals
//
// When a shard refuses every user (sold out, paused, ended, not started), a process reads
// the reason once, with a compact filter of those who hold or held something. It then
// refuses by itself until Redis tells that the reason may have changed, at most for a
// second. A claim with a key, of a user who may be a holder, always goes to Redis: it may
// be the repeat of a yes. By the clock nothing is refused that is within its measured
// error. Without RESP3 every claim goes to Redis.
//
// # Durability
//
// Config.Durability says what an answer survives, and Open and Ping refuse a
// Redis whose settings cannot give it: dibs.LevelDurable needs appendfsync
// always, which batches make cheap. At dibs.LevelReplicated every answer, a
// repeat and a read too, goes with WAIT over one connection; what too few
// replicas confirm is looked for until it is confirmed, and of unknown effect
// else. Check lists all that the engine needs of Redis, with remedies. Each process
// asks Redis three times a second whether it still gives the level. While it does
// not, the outcome of new claims is dibs.Unavailable, or they are granted all the
// same where Config.DurabilityLost says so; no claim asks more of Redis for it.
//
// # Why buckets
//
// A hash with one field for each user takes the least time, and too much memory;
// small hashes of Redis' own compact form take a command for each claim. Here a
// few users share a field whose value is their claims, packed: one HMGET reads and
// one HSET writes all of a batch, and the cost of a field is shared. Measured with
// eight-digit users, after trimming, beside the yardstick of internal/yardstick with its
// 127 to 130 bytes, by how many users share a bucket on the average when all is
// granted: a field for each user takes 71 bytes a grant (0.56), one 62 (0.48), one
// and a half 56 (0.44), two 52 (0.40), three 44 (0.34). What Redis does for a claim
// grows with it, from 13,260 instructions at one to 13,810 at one and a half. One
// and a half it is, since the steps of the hash's own table change a grant by up
// to 4 bytes. Of a user a bucket has the name, whole numbers and UUIDs in binary,
// a byte that counts their claims, and 14 bytes for each; when a claim was granted
// stands in the index of places, once for all that were decided together.
//
// Lua hashes every byte of a string that it makes, so that claim.lua makes few: the
// node sends each claim as it begins in a bucket, and what it sent is the journal's
// entry too. The number in meta's field format says how all of this is written.
// Where it is a later one, nothing is read or written; where it is an earlier one,
// the shard is not open, and is loaded again.
//
// # Parts
//
// An Engine is put together of parts that need each other in one direction only:
//
//	process   settings, connection, identity and end: what all parts share
//	level     whether Redis gives its level
//	shard     what this process knows of a shard; its journal, finds, and holdings
//	follower  what a shard refuses with, while that is true
//	lane      the claims of a shard: waiters, batches, answers, lost answers
//	lanes     the lanes of this process
//	shardList, surveys, ledgerID, store, opening   each for what its name says
//
// Package internal/conn speaks to Redis and has the scripts; internal/format has the
// names and bytes of what Redis holds.
//
// # Caveats
//
// The time of a place (HeadAt, window, pay-by) is Redis' own. A campaign that is
// restocked far beyond the stock that it was opened with has fuller buckets,
// until it is opened again. Entries of other processes are not signalled by
// Appended. An hour after a promoted server has lost its last replica, Redis
// forgets whom it followed, and shards are loaded once more. A repeat that
// reaches another process within the moment that Redis takes to tell of a change may be
// refused there, and is found when it is sent again. A shard that has nothing left
// refuses as sold out whatever the campaign's other shards have: its caller looks at
// all of them.
package redisengine
