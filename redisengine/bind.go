package redisengine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// ErrForeign: this Redis holds the campaigns of another ledger.
var ErrForeign = errors.New("redisengine: this Redis belongs to another ledger")

// Bind ties the Redis database to a ledger, named by its identity, and returns
// ErrForeign when it is tied to another one. Campaigns are numbered by their
// ledger: nodes of two ledgers would take each other's stock for their own. An
// empty Redis takes the first ledger that comes. Call it before anything else. A
// Redis that was emptied since is tied again before a campaign is loaded into it.
func (e *Engine) Bind(ctx context.Context, ledger string) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	// It is read first: a Redis that is full refuses the write, which is needed once.
	r, err := e.redis.call(ctx, "GET", ledgerKey)
	if err == nil && r.none {
		if _, err := e.redis.call(ctx, "SETNX", ledgerKey, ledger); err != nil {
			return fmt.Errorf("redisengine: %w", fault(ctx, dibs.EffectUnknown, err))
		}
		r, err = e.redis.call(ctx, "GET", ledgerKey)
	}
	if err != nil {
		return fmt.Errorf("redisengine: %w", fault(ctx, dibs.EffectNone, err))
	}
	if r.text != ledger {
		return ErrForeign
	}
	e.ledger.Store(&ledger)
	return nil
}

// rebind ties the Redis database again to the ledger that it was tied to.
func (e *Engine) rebind(ctx context.Context) error {
	ledger := e.ledger.Load()
	if ledger == nil {
		return nil
	}
	return e.Bind(ctx, *ledger)
}
