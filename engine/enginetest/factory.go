package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// State is the durable state of one engine: a folder, a database, a server.
// The suite calls it from one goroutine at a time.
type State interface {
	// Open opens an engine on the state. The engine before was closed or killed.
	Open(ctx context.Context) (dibs.Engine, error)
	// Kill ends the engine opened last as the death of its process would:
	// without Close, and with calls still running in it. Decisions that the engine had
	// not made durable are gone. When Kill returns, the old engine can change the
	// state no more, and Open may be called.
	Kill(ctx context.Context) error
}

// Factory makes the engines of one implementation.
type Factory struct {
	// New makes an empty state, which is removed when tb ends. Its engines read
	// the time from now.
	New func(tb testing.TB, now func() time.Time) State
	// OwnClock is set when the engines cannot read the time from now, since
	// another clock decides. Its time must be within a minute of time.Now.
	OwnClock bool
	// Shards is how many shards the campaigns of the checks have, all of them open; 0 means
	// 1. It must be at most the engine's MaxShards. Checks that are about several shards, or
	// about a limit per product, choose by themselves.
	Shards int
}
