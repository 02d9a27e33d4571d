package redisengine

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// keepEnd is how long it is known where the journal of a retired shard ended: as
	// long as a late payment may bring the campaign back, or an administrator an old backup.
	keepEnd = 90 * 24 * time.Hour
	// retireGrace is how long after its window, by Redis' clock, a campaign stays.
	retireGrace = time.Minute
)

// Retire forgets a shard; see dibs.Engine. Its journal stays for a while, for
// a ledger that is restored from a backup. The remains of a load that was broken off
// are forgotten too, but not while a process works on it: this one, or the one that
// has the shard's lease.
func (e *Engine) Retire(ctx context.Context, id dibs.ShardID) error {
	l, err := e.lanes.lane(id)
	if err != nil {
		return err
	}
	if l.loading.Load() > 0 {
		return conn.ErrLoading
	}
	k := &l.keys
	defer l.follower.lift()
	keys := append([]string{k.Meta, k.Holdings, k.Places, k.Journal, k.Free, k.Issued, k.Refs, k.Settler, k.State, k.End}, k.OfProduct()...)
	_, err = e.p.step(ctx, conn.RetireScript, keys,
		format.Itoa(e.p.cfg.KeepRetired.Milliseconds()), format.Itoa(retireGrace.Milliseconds()), e.p.name, format.Itoa(keepEnd.Milliseconds()),
		format.Itoa(id.Campaign))
	if err == nil || errors.Is(err, dibs.ErrNotOpen) {
		// Another process may have been first. The lease has gone with the shard, or
		// ends by itself.
		l.leased.Store(false)
		l.known.Lock()
		defer l.known.Unlock()
		l.noteGone(true)
	}
	return err
}

// Halt takes a shard out, for all processes; see dibs.Engine.
func (e *Engine) Halt(ctx context.Context, id dibs.ShardID) error {
	l, err := e.lanes.lane(id)
	if err != nil {
		return err
	}
	defer l.follower.lift()
	_, err = e.p.step(ctx, conn.HaltScript, []string{l.keys.Meta, l.keys.State})
	return err
}
