package dibs

import (
	"context"
	"time"
)

// Abilities are what an engine can do beside its contract. A nil field says that
// the engine cannot do it, and its caller goes on without. An engine returns the
// same abilities for as long as it is open; all of them are safe for concurrent
// use.
type Abilities struct {
	// Stats returns what the engine has done in this process so far. It sends no
	// request.
	Stats func() EngineStats
	// Level returns the level that was asked for, and what was found last of each
	// setting that it depends on, once for each Subject. It sends no request. An
	// engine without it never gives less than its Durability.
	Level func() (level string, settings []Finding)
	// OnChange sets the function that the engine calls with a shard when another
	// process may have changed what the shard refuses with: its definition, or
	// whether anything is left. It is set at most once, before the engine decides. f
	// must return at once.
	OnChange func(f func(ShardID))
	// Bind ties what the engine stands on to a ledger, named by its identity. It
	// fails where that belongs to another ledger: campaigns are numbered by their
	// ledger, and nodes of two ledgers would take each other's stock for their own.
	// It is called before anything else. An engine without it is alone with its
	// ledger.
	Bind func(ctx context.Context, ledger string) error
	// Store is where all processes of a Shared engine keep small things.
	Store SharedStore
	// Products sets the function by which the engine asks for the product whose limit a
	// campaign shares, by its number: empty for none, ErrNotFound for a campaign that
	// there is not. It is set at most once, before anything is asked of a shard. f may ask
	// the ledger; any other error of it is the answer to what was asked.
	Products func(f func(campaign uint32) (product string, err error))
	// Counts reports whether the claims of a shard that is not open count towards the
	// limit per product of one that is: a claim of it that is released gives its room
	// back once the shard was opened again. An engine without it cannot count over
	// campaigns, and must open none with a limit per product.
	Counts func(ctx context.Context, shard ShardID) (bool, error)
	// Deployments asks each deployment of an engine that has several, by its number in
	// the ledger, whether it can decide claims now.
	Deployments func(ctx context.Context) map[int]error
}

// SharedStore keeps small things beside the claims, where every process of a
// Shared engine reaches them. Errors are an *Error of Unavailable with its effect.
type SharedStore interface {
	// RunScript runs a script on keys of one slot, and returns its answer: texts,
	// int64, nil, and lists of these. The answer is as durable as the engine's level
	// says.
	RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error)
	// Put keeps a value under a name for a time. The name may be a secret: the store
	// holds a hash of it.
	Put(ctx context.Context, name, value string, keep time.Duration) error
	// Take returns the value under a name and forgets it, in one step; false when
	// there is none.
	Take(ctx context.Context, name string) (string, bool, error)
}

// EngineStats is what an engine has done in this process since it was opened.
// Times are nanoseconds.
type EngineStats struct {
	// Batches are the claims that were decided together, or whose decisions became
	// durable together.
	Batches Tally
	// Queued is how long the oldest claim of each batch waited for it, and Durable
	// how long the batch took from there to an answer that lasts.
	Queued, Durable Tally
	// Lost counts batches whose outcome was unknown at first: an answer was lost, or
	// a commit failed.
	Lost int64
}

// Tally is what a histogram has counted.
type Tally struct {
	// Bounds are the upper bounds of the buckets.
	Bounds []int64
	// Counts are the values in each bucket, and last those above all bounds.
	Counts []int64
	// Sum is of all values.
	Sum int64
}
