package dibs

import (
	"context"
	"log/slog"
)

// EngineClaim is a claim request as an engine takes it: validated, and bound
// to its shard.
type EngineClaim struct {
	Shard  ShardID
	UserID string
	// Quantity is at least 1.
	Quantity int64
	// Key is the hash of the request's key, 0 for none.
	Key uint64
	// Late takes stock for a payment that came after its claim was released:
	// neither the window nor the campaign's state refuses it; stock, limit and
	// MaxClaimsPerUser do.
	Late bool
	// Reference is the caller's own text, empty for none. The engine decides nothing by
	// it: it goes into the journal with a new grant.
	Reference string
	// OnlyRepeat asks for nothing new: the backlog is full, a gate refused, or the
	// level is lost; the outcome is that of a repeat, or Overloaded.
	OnlyRepeat bool
	// OnlyKnown asks a shard that the user may have been on before the campaign had
	// more shards: the outcome is NotFound for a user who never had a claim there.
	OnlyKnown bool
	// Shards is the number of shards by which this one was chosen; 0 is not checked.
	// A shard that obeys a definition with another number decides nothing, and returns
	// ErrStale.
	Shards int
}

// Effect is that of a claim which failed before its key was looked up.
func (c *EngineClaim) Effect() Effect { return unlookedEffect(c.Key != 0) }

// Grant is what an engine keeps of a granted claim.
type Grant struct {
	Position
	UserID   string
	Quantity int64
	// Items are the values of the items granted; nil for units.
	Items []string
	// At and PayBy are milliseconds since 1970; PayBy is 0 when there is none.
	At    int64
	PayBy int64
	// Released is set once the stock of the claim came back.
	Released bool
}

// Decision is an engine's answer to a claim.
type Decision struct {
	// Outcome is Granted, or a refusal: Paused, NotStarted, Ended, SoldOut, LimitReached,
	// TooManyClaims or KeyReused. It is NotFound only with OnlyKnown, Overloaded only with
	// OnlyRepeat. It is Unavailable while the engine's level is lost, and while a campaign
	// that shares the limit per product is not counted: repeats are answered even then.
	Outcome  Reason
	Replayed bool
	// Grant is set when Outcome is Granted.
	Grant Grant
	// Remaining is what is left, with SoldOut.
	Remaining int64
	// Held are the claims that fill the limit, with LimitReached, newest first,
	// at most MaxHeldListed of them. Those of other campaigns are not listed.
	Held []Position
	// OfProduct says, with LimitReached, that it is the limit per product.
	OfProduct bool
}

// MaxHeldListed bounds the claims that a LimitReached decision lists.
const MaxHeldListed = 100

// MaxClaimsPerUser is how many claims of one user and campaign an engine grants.
// Released ones count, since they are kept for repeats: a user who claims and
// cancels without end would otherwise make the engine's record of them grow
// without end. A higher limit per user is reached by claims of more units.
const MaxClaimsPerUser = 1_000

// Holding is one claim of a shard, loaded into an engine.
type Holding struct {
	Cursor
	UserID   string
	Key      uint64
	Quantity int64
	At       int64
	PayBy    int64
	Items    []uint32
	Released bool
}

// ShardLoad is a shard as the ledger knows it, for an engine to open.
type ShardLoad struct {
	// Epoch is the new epoch, raised by the load itself.
	Epoch uint16
	// Position is the committed position: the holdings include every entry up
	// to it. The engine adds its journal's tail after it.
	Position Cursor
	// StockLeft is the ledger's count of what is left, before the tail.
	StockLeft int64
	// Items are the values of all items by number; nil for units.
	Items []string
	// FreeItems are the numbers of items that nobody holds, in granting order,
	// before the tail.
	FreeItems []uint32
	// Holdings are the claims, released ones too, in the order of their places.
	Holdings []Holding
	// Refs are the withdrawals that the ledger has settled. The entry of one may stand in
	// the journal after Position, and changes nothing then: see live.Ledger.SettleTransfer.
	Refs []string
	// Moved is the units that left the shard by transfers, less those that came, as
	// the ledger has counted both; before the tail.
	Moved int64
	// Sharing are the other campaigns that share the limit per product, by number, as
	// the ledger has them: all that were ever published. Nil without such a limit.
	Sharing []uint32
	// Stands returns nil while the epoch is the ledger's latest; nil for an engine
	// that has the ledger to itself. A shared engine asks it after the shard was taken
	// out and before it is opened: a server that was emptied meanwhile cannot tell
	// that another process has opened a later epoch on it.
	Stands func(ctx context.Context) error
}

// Adjustment changes a shard's stock: a restock that the ledger has counted,
// or a withdrawal that it has not.
type Adjustment struct {
	Shard ShardID
	// Epoch is the shard's epoch when the command was written. A restock of an
	// older epoch is refused with ErrStale, one of an epoch that is not open yet
	// as Unavailable. A withdrawal carries 0, or the only epoch in which it counts.
	Epoch uint16
	// Ref identifies the command; a repeat changes nothing. A restock and a
	// withdrawal never share one.
	Ref string
	// Delta is signed: units or items.
	Delta int64
	// FirstItem and Items are the new items' number and values (restock only).
	FirstItem uint32
	Items     []string
	// Numbers are those of the Items in place of FirstItem, where the campaign's items
	// are divided over several shards: a shard's own then do not follow one another.
	Numbers []uint32
}

// Number is the number of the i-th of Items.
func (a *Adjustment) Number(i int) uint32 {
	if a.Numbers != nil {
		return a.Numbers[i]
	}
	return a.FirstItem + uint32(i)
}

// Release gives the stock of a claim, and the user's allowance, back.
type Release struct {
	// Claim is where the claim stands.
	Claim Position
	// Epoch is the shard's epoch when the command was written; one of an older
	// epoch is refused with ErrStale, since the rebuild has counted it, and one
	// of an epoch that is not open yet as Unavailable.
	Epoch uint16
}

// ShardStats is what an engine counts of a shard.
type ShardStats struct {
	// Remaining is what can still be granted.
	Remaining int64
	// Granted is the units granted and not released.
	Granted int64
	// Moved is the units that left the shard by transfers, less those that came: a
	// transfer changes no shard's Remaining + Moved, and the sum over a campaign's
	// shards is what is left of it, with what is on its way.
	Moved int64
	// Head is the last durable journal entry.
	Head Cursor
	// HeadAt is when it was decided, in milliseconds since 1970.
	HeadAt int64
	// Now is the engine's clock, in milliseconds since 1970: windows are judged by
	// it.
	Now int64
	// Queued is the entries that wait for their commit.
	Queued int64
	// Waiting is the claims that wait in this process to be decided; 0 where they
	// are decided at once.
	Waiting int64
	// Version is the campaign's Version that the engine obeys.
	Version int64
	// Settled is the committed position that Lease told the engine last.
	Settled Cursor
	// Uncounted is the number of a campaign that shares the limit per product and whose
	// claims the engine does not count, one of several perhaps; 0 for none. Until each
	// of them was opened, the shard grants nothing: the outcome of new claims is
	// Unavailable.
	Uncounted uint32
}

// Engine decides claims. Its guarantees, whatever the concurrency:
//
//   - Within one epoch, decisions on a shard are linearizable. The units
//     granted and not released never exceed the stock, nor the limit for any
//     user. The limit per product holds over the shards of one number of all
//     campaigns that share it.
//   - A decision and its journal entry are one atomic step. An answer that
//     depends on an entry (a grant, its repeat, a limit refusal, a read) is
//     given only when the entry is as durable as the engine's level says.
//   - A repeat (same user, same key) returns the first result, whatever state,
//     window or stock are by then. The same key with another quantity is
//     KeyReused.
//   - The order of checks: repeat, paused or ended, window, then stock before
//     limit for sales and coupons, limit before stock for red packets, then the
//     limit per product and MaxClaimsPerUser. A user whose loaded claims are more than that is refused
//     further ones, and nothing else.
//   - Errors are *Error of Unavailable or Overloaded with their effect, the
//     context's, ErrNotOpen or ErrStale. After EffectUnknown the caller
//     repeats with the same key. EffectNone says that this call granted nothing,
//     and, unless the engine is Shared, that no earlier one with its key did.
//   - ErrNotOpen says that the shard has to be loaded: it never was, or what the
//     engine holds of it may have lost history and is not answered from.
//
// When Shared, several processes decide on the same shards, each with an
// Engine of its own, and the guarantees hold across them. Refusals by stock,
// state or window may then go by what was true up to a second ago.
//
// All methods are safe for concurrent use.
type Engine interface {
	Journal

	// Claim decides one claim.
	Claim(ctx context.Context, req EngineClaim) (Decision, error)
	// Open makes a shard claimable from the ledger's load and the journal's
	// tail, in the load's epoch. It replaces what the engine held of the shard:
	// meanwhile the shard is not open. ErrStale when the shard is open, or being
	// opened, in a later epoch: another process was first. An error with a method
	// NotDivided that returns true says that the shard goes by a number of shards which
	// the ledger does not know: the same load is not made again then.
	Open(ctx context.Context, c *Campaign, shard ShardID, load *ShardLoad) error
	// Configure makes a campaign's state, window, limit and number of shards those of
	// c, on all its shards; the time to pay and the stock never change by it. An older
	// Version than the engine has changes nothing. When it returns nil, no later claim is
	// decided by the old definition. A shard that fails does not keep the others from it:
	// the error joins those of the shards, ErrNotOpen for one that the engine does not hold.
	Configure(ctx context.Context, c *Campaign) error
	// Adjust changes the stock. A withdrawal beyond what remains is an *Error
	// of InvalidState; a repeat of a Ref returns nil.
	Adjust(ctx context.Context, a Adjustment) error
	// Release gives a claim's stock back, once; a repeat returns nil.
	// ErrNotFound when there is no such claim.
	Release(ctx context.Context, r Release) error
	// Find returns a grant by its position; false when the engine has none.
	Find(ctx context.Context, p Position) (Grant, bool, error)
	// HoldingsOf returns a user's grants on the shards the engine holds. It may
	// leave those out of shards whose last entry is where Lease told that the
	// ledger is.
	HoldingsOf(ctx context.Context, user string) ([]Grant, error)
	// Stats counts a shard. ErrNotOpen when the engine does not hold it.
	Stats(ctx context.Context, shard ShardID) (ShardStats, error)
	// Retire forgets a shard that has ended and is settled. An engine that several
	// processes share returns an *Error of InvalidState when the campaign goes on
	// by the engine's clock: that of the caller may be wrong.
	Retire(ctx context.Context, shard ShardID) error
	// Halt takes a shard out: no process decides anything on it until it is opened
	// again. Its journal stays. A shard that is not open stays as it is.
	Halt(ctx context.Context, shard ShardID) error
	// Server names the run of the server that decides on a shard, the same for all
	// processes; empty where that is this process.
	Server(ctx context.Context, shard ShardID) (string, error)
	// Servers names the runs of all servers that decide on shards and that answer
	// now, by their addresses; none where that is this process.
	Servers(ctx context.Context) (map[string]string, error)
	// Abilities returns what the engine can do beside this contract.
	Abilities() Abilities
	// Shared reports whether other processes decide on the same shards.
	Shared() bool
	// MaxShards is the most shards a campaign may have on this engine.
	MaxShards() int
	// Durability names the level at which answers are given, one of Levels.
	Durability() string
	// Ping returns nil when the engine can decide claims now.
	Ping(ctx context.Context) error
	// Close stops deciding, completes what was decided, and releases resources.
	Close(ctx context.Context) error
}

// Tracer shows where time goes, span by span. Package tracing has the one that
// there is. It is safe for concurrent use.
type Tracer interface {
	// Begin begins a span: a part of the trace that ctx is in, or else a trace of
	// its own. Calls that belong to it are made with the context returned; end ends it,
	// with the error that it ended in.
	Begin(ctx context.Context, name string, about ...slog.Attr) (in context.Context, end func(error))
	// Part is Begin where ctx is in a trace that is kept, and nothing elsewhere.
	Part(ctx context.Context, name string, about ...slog.Attr) (in context.Context, end func(error))
}
