package redisengine

import (
	"context"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// shardList is the list of all shards in Redis. It knows nothing itself: every
// process reads and writes the same hash, and each entry says at which step of its
// opening the shard was, so that one that was listed anew is not taken off by
// a process that has read of it before.
type shardList struct{ p *process }

// have returns the shards that have entries or are held, those of lanes that were
// missing too, and takes off the list what has gone. A listed shard of a campaign that the
// ledger does not have counts as held.
func (t *shardList) have(ctx context.Context, lanes laneMap) ([]dibs.ShardID, error) {
	shards, err := t.listed(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.listHeld(ctx, lanes, shards); err != nil {
		return nil, err
	}
	var have []dibs.ShardID
	for id, step := range shards {
		keys, known, err := t.p.keysIfKnown(id)
		if err != nil {
			return nil, err
		}
		if !known {
			// The ledger was restored from a backup of before the campaign. What there is of it
			// cannot be looked for, and no other campaign may get its number over that.
			have = append(have, id)
			continue
		}
		n, err := t.p.call(ctx, "XLEN", keys.Journal)
		if err == nil && n.Number == 0 {
			// A shard whose entries were all dropped is held still.
			n, err = t.p.call(ctx, "EXISTS", keys.Meta)
		}
		if err != nil {
			return nil, err
		}
		if n.Number > 0 {
			have = append(have, id)
			continue
		}
		if err := t.forget(ctx, id, &keys, step); err != nil {
			return nil, err
		}
	}
	return have, nil
}

// listed returns the list of shards, with the step of its opening that each was at.
func (t *shardList) listed(ctx context.Context) (map[dibs.ShardID]string, error) {
	if t.p.closed.Load() {
		return nil, errClosed
	}
	r, err := t.p.call(ctx, "HGETALL", format.ShardsKey)
	if err != nil {
		return nil, err
	}
	shards := make(map[dibs.ShardID]string, len(r.List)/2)
	for member, step := range r.Pairs() {
		id, err := format.ShardOf(member)
		if err != nil {
			return nil, err
		}
		shards[id] = step.Text
	}
	return shards, nil
}

// forget takes a shard off the list when nothing of it is left: its journal
// has expired. A shard that is open keeps its stream, even when it is empty. step is
// what the list said before the shard was looked at: one that was listed since stays.
func (t *shardList) forget(ctx context.Context, id dibs.ShardID, keys *format.Keys, step string) error {
	n, err := t.p.call(ctx, "EXISTS", keys.Journal)
	if err != nil || n.Number > 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.p.cfg.Patience)
	defer cancel()
	if _, err := t.p.redis.Run(ctx, conn.ForgetScript, []string{format.ShardsKey}, format.MemberOf(id), step); err != nil {
		return conn.Fault(ctx, dibs.EffectUnknown, err)
	}
	return nil
}

// put puts a shard on the list of all shards, with the step that its opening is at:
// twice the epoch before the shard is shut, and one more once it is. No step comes
// twice in the life of a shard, whose epochs only rise. Older versions counted the
// openings there, which are never more than the epochs.
func (t *shardList) put(ctx context.Context, id dibs.ShardID, step int64) error {
	_, err := t.p.step(ctx, conn.ListScript, []string{format.ShardsKey}, format.MemberOf(id), format.Itoa(step))
	return err
}

// listHeld adds the shards to the list that this process decides on and that are
// not there. The list and the shards may be on different servers of a cluster, of
// which one can lose what the other keeps.
func (t *shardList) listHeld(ctx context.Context, held laneMap, shards map[dibs.ShardID]string) error {
	for _, l := range held {
		if _, ok := shards[l.id]; ok || !l.holds() {
			continue
		}
		r, err := t.p.hget(ctx, l.keys.Meta, "epoch")
		if err != nil {
			return err
		}
		epoch, err := strconv.ParseUint(r.Text, 10, 16)
		if err != nil {
			// It has gone, or says why not when it is asked for something.
			continue
		}
		step := 2*int64(epoch) + 1
		t.p.log.Warn("a shard that Redis holds was not on the list of shards, and is again", "shard", l.id.String())
		if err := t.put(ctx, l.id, step); err != nil {
			return err
		}
		shards[l.id] = format.Itoa(step)
	}
	return nil
}
