package redisengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
)

// ReadJournal returns entries after a place; see dibs.Journal.
func (e *Engine) ReadJournal(ctx context.Context, id dibs.ShardID, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	s, err := e.lanes.shard(id)
	if err != nil {
		return nil, err
	}
	return s.readJournal(ctx, after, limit)
}

// TrimJournal drops settled entries; see dibs.Journal.
func (e *Engine) TrimJournal(ctx context.Context, id dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	s, err := e.lanes.shard(id)
	if err != nil {
		return err
	}
	return s.trimJournal(ctx, upTo, before)
}

// JournalEnd returns the place of a shard's last entry; see dibs.Journal.
func (e *Engine) JournalEnd(ctx context.Context, id dibs.ShardID) (dibs.Cursor, error) {
	s, err := e.lanes.shard(id)
	if err != nil {
		return dibs.Cursor{}, err
	}
	return s.journalEnd(ctx)
}

// JournalShards lists the shards that have entries or are held; see dibs.Journal.
func (e *Engine) JournalShards(ctx context.Context) ([]dibs.ShardID, error) {
	return e.surveys.list.have(ctx, *e.lanes.all.Load())
}

// Find returns a grant by its position; see dibs.Engine.
func (e *Engine) Find(ctx context.Context, p dibs.Position) (dibs.Grant, bool, error) {
	s, err := e.lanes.shard(p.ShardID)
	if err != nil {
		return dibs.Grant{}, false, err
	}
	return s.find(ctx, p.Cursor)
}

// Stats counts a shard; see dibs.Engine.
func (e *Engine) Stats(ctx context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	s, err := e.lanes.shard(id)
	if err != nil {
		return dibs.ShardStats{}, err
	}
	st, err := s.stats(ctx)
	if err == nil {
		st.Waiting = e.lanes.waiting(id)
	}
	return st, err
}

// HoldingsOf returns a user's grants, newest first within a shard, on the
// shards that are open in Redis and not settled to their end; see dibs.Engine.
func (e *Engine) HoldingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	shards, err := e.surveys.unsettled(ctx)
	if err != nil {
		return nil, err
	}
	of := make([][]dibs.Grant, len(shards))
	asks, ctx := errgroup.WithContext(ctx)
	asks.SetLimit(asksAtOnce)
	for i, id := range shards {
		asks.Go(func() error {
			s, err := e.lanes.shard(id)
			if err != nil {
				return err
			}
			if of[i], err = s.holdingsOf(ctx, user); errors.Is(err, dibs.ErrNotOpen) {
				return nil
			}
			slices.Reverse(of[i])
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(of...), nil
}

// Server names the run of the server that has a shard; see dibs.Engine.
func (e *Engine) Server(ctx context.Context, id dibs.ShardID) (string, error) {
	keys, err := e.p.keysOf(id)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, e.p.cfg.Patience)
	defer cancel()
	res, err := conn.ResultOf(ctx, e.p.redis, conn.ServerScript, []string{keys.Meta})
	if err != nil {
		return "", conn.Fault(ctx, dibs.EffectNone, err)
	}
	if err = conn.Refusal(&res); err == nil && len(res.Rest) < 1 {
		err = conn.ErrShape
	}
	if err != nil {
		return "", dibs.Unavail(dibs.EffectNone, err)
	}
	return res.Rest[0].Text, nil
}

// Servers names the runs of all masters that answer; see dibs.Engine. A replica
// stands there without a name: at its address no master is.
func (e *Engine) Servers(ctx context.Context) (map[string]string, error) {
	if e.p.closed.Load() {
		return nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, e.p.cfg.Patience)
	defer cancel()
	return e.p.redis.Masters(ctx), nil
}
