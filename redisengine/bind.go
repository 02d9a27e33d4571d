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
// empty Redis takes the first ledger that comes. Call it before anything else.
func (e *Engine) Bind(ctx context.Context, ledger string) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	if _, err := e.redis.call(ctx, "SETNX", ledgerKey, ledger); err != nil {
		return fmt.Errorf("redisengine: %w", fault(ctx, dibs.EffectUnknown, err))
	}
	r, err := e.redis.call(ctx, "GET", ledgerKey)
	if err != nil {
		return fmt.Errorf("redisengine: %w", fault(ctx, dibs.EffectNone, err))
	}
	if r.text != ledger {
		return ErrForeign
	}
	return nil
}
