package redisengine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// ErrForeign says that this Redis holds the campaigns of another ledger.
var ErrForeign = errors.New("redisengine: this Redis belongs to another ledger")

// ledgerID is the ledger that the Redis database is tied to, and which of the ledger's
// deployments this Redis is.
type ledgerID struct {
	p *process
	// id is the identity of the ledger, nil before bind.
	id atomic.Pointer[string]
	// deployment is the identity of the deployment, nil before identify.
	deployment atomic.Pointer[string]
}

// bind ties the Redis database to a ledger, named by its identity, and returns
// ErrForeign when it is tied to another one. Campaigns are numbered by their
// ledger: nodes of two ledgers would take each other's stock for their own. An
// empty Redis takes the first ledger that comes. Call it before anything else. A
// Redis that was emptied since is tied again before a campaign is loaded into it.
func (l *ledgerID) bind(ctx context.Context, ledger string) error {
	ctx, cancel := context.WithTimeout(ctx, l.p.cfg.Patience)
	defer cancel()
	has, err := l.keep(ctx, format.LedgerKey, ledger)
	if err != nil {
		return err
	}
	if has != ledger {
		return ErrForeign
	}
	l.id.Store(&ledger)
	return nil
}

// keep writes a value where there is none, and returns the one there is. No value only
// reads.
func (l *ledgerID) keep(ctx context.Context, key, value string) (string, error) {
	// It is read first: a Redis that is full refuses the write, which is needed once.
	r, err := l.p.redis.Call(ctx, "GET", key)
	if err == nil && r.None && value != "" {
		if _, err := l.p.redis.Call(ctx, "SETNX", key, value); err != nil {
			return "", fmt.Errorf("redisengine: %w", conn.Fault(ctx, dibs.EffectUnknown, err))
		}
		r, err = l.p.redis.Call(ctx, "GET", key)
	}
	if err != nil {
		return "", fmt.Errorf("redisengine: %w", conn.Fault(ctx, dibs.EffectNone, err))
	}
	return r.Text, nil
}

// identify gives the deployment an identity where it has none, and returns the one that
// it has. No identity only reads.
func (l *ledgerID) identify(ctx context.Context, identity string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.p.cfg.Patience)
	defer cancel()
	has, err := l.keep(ctx, format.DeploymentKey, identity)
	if err == nil && has != "" {
		l.deployment.Store(&has)
	}
	return has, err
}

// rebind ties the Redis database again to the ledger that it was tied to, and gives it
// its identity back.
func (l *ledgerID) rebind(ctx context.Context) error {
	if ledger := l.id.Load(); ledger != nil {
		if err := l.bind(ctx, *ledger); err != nil {
			return err
		}
	}
	if identity := l.deployment.Load(); identity != nil {
		if _, err := l.identify(ctx, *identity); err != nil {
			return err
		}
	}
	return nil
}

// Identity returns the text by which the ledger knows this deployment of Redis: a
// server, a Sentinel group or a Cluster. It is empty where none was written.
func (e *Engine) Identity(ctx context.Context) (string, error) { return e.ledger.identify(ctx, "") }

// Identify gives the deployment an identity where it has none, and returns the one that
// it has. A Redis that was emptied since has it again with the next campaign that is
// loaded into it.
func (e *Engine) Identify(ctx context.Context, identity string) (string, error) {
	return e.ledger.identify(ctx, identity)
}
