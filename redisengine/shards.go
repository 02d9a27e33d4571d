package redisengine

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
)

// JournalShards lists the shards that have entries or are held; see
// dibs.Journal.
func (e *Engine) JournalShards(ctx context.Context) ([]dibs.ShardID, error) {
	shards, err := e.listed(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.listHeld(ctx, shards); err != nil {
		return nil, err
	}
	var have []dibs.ShardID
	for id, step := range shards {
		n, err := e.count(ctx, "XLEN", keysOf(id).journal)
		if err == nil && n == 0 {
			// A shard whose entries were all dropped is held still.
			n, err = e.count(ctx, "EXISTS", keysOf(id).meta)
		}
		if err != nil {
			return nil, err
		}
		if n > 0 {
			have = append(have, id)
			continue
		}
		if err := e.forget(ctx, id, step); err != nil {
			return nil, err
		}
	}
	return have, nil
}

// listed returns the list of shards, with the step of its opening that each was at.
func (e *Engine) listed(ctx context.Context) (map[dibs.ShardID]string, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, "HGETALL", shardsKey)
	if err != nil {
		return nil, fault(ctx, dibs.EffectNone, err)
	}
	shards := make(map[dibs.ShardID]string, len(r.list)/2)
	for member, step := range r.pairs() {
		id, err := shardOf(member)
		if err != nil {
			return nil, err
		}
		shards[id] = step.text
	}
	return shards, nil
}

// count runs a command that answers with a number.
func (e *Engine) count(ctx context.Context, command, key string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, command, key)
	if err != nil {
		return 0, fault(ctx, dibs.EffectNone, err)
	}
	return r.number, nil
}

// forget takes a shard off the list when nothing of it is left: its journal
// has expired. A shard that is open keeps its stream, even when it is empty. step is
// what the list said before the shard was looked at: one that was listed since stays.
func (e *Engine) forget(ctx context.Context, id dibs.ShardID, step string) error {
	n, err := e.count(ctx, "EXISTS", keysOf(id).journal)
	if err != nil || n > 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	if _, err := e.redis.run(ctx, forgetScript, []string{shardsKey}, memberOf(id), step); err != nil {
		return fault(ctx, dibs.EffectUnknown, err)
	}
	return nil
}

// list puts a shard on the list of all shards, with the step that its opening is at:
// twice the epoch before the shard is shut, and one more once it is. No step comes
// twice in the life of a shard, whose epochs only rise. Older versions counted the
// openings there, which are never more than the epochs.
func (e *Engine) list(ctx context.Context, id dibs.ShardID, step int64) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.run(ctx, listScript, []string{shardsKey}, memberOf(id), itoa(step))
	if err != nil {
		return fault(ctx, dibs.EffectUnknown, err)
	}
	res, err := resultOf(&r)
	if err != nil {
		return dibs.Unavail(dibs.EffectUnknown, err)
	}
	return refusal(&res)
}

// listHeld adds the shards to the list that this process decides on and that are
// not there. The list and the shards may be on different servers of a cluster, of
// which one can lose what the other keeps.
func (e *Engine) listHeld(ctx context.Context, shards map[dibs.ShardID]string) error {
	for _, l := range e.allLanes() {
		if _, ok := shards[l.id]; ok || !l.holds() {
			continue
		}
		r, err := e.hget(ctx, l.keys.meta, "epoch")
		if err != nil {
			return err
		}
		epoch, err := strconv.ParseUint(r.text, 10, 16)
		if err != nil {
			// It has gone, or says why not when it is asked for something.
			continue
		}
		step := 2*int64(epoch) + 1
		e.log.Warn("a shard that Redis holds was not on the list of shards, and is again", "shard", l.id.String())
		if err := e.list(ctx, l.id, step); err != nil {
			return err
		}
		shards[l.id] = itoa(step)
	}
	return nil
}

// hget reads a field of a hash.
func (e *Engine) hget(ctx context.Context, key, field string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, "HGET", key, field)
	var answered *answeredError
	if errors.As(err, &answered) && strings.HasPrefix(answered.message, "WRONGTYPE") {
		return reply{none: true}, nil
	}
	if err != nil {
		return reply{}, fault(ctx, dibs.EffectNone, err)
	}
	return r, nil
}
