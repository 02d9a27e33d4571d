package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// A ledger that went back in time may lack units that had left one shard for another one,
// and what the other one has granted of them would be more than the ledger has there. The
// journals bring it all again, in the order in which it went: what has arrived is settled
// after it has left. Where a journal has lost that too it never comes, and nothing is
// waited for without end.

// mayGetUnits reports whether the ledger may still get what it lacks of a shard: less than
// leftWithin has passed since the first call, other than by calls that were followed by success.
func (s *Loader) mayGetUnits(id dibs.ShardID) bool {
	since, _ := s.waitsForUnits.LoadOrStore(id, time.Now())
	return time.Since(since.(time.Time)) < leftWithin
}

// settleTogether settles the journals of all shards of a campaign, one of which does not
// fit together with the ledger. Unavailable while the others cannot be settled, for leftWithin:
// their nodes or servers may be away.
func (s *Loader) settleTogether(ctx context.Context, t *Shard) error {
	for until := time.Now().Add(OpenPatience); ; {
		err := s.settleAll(ctx, t, until)
		if ctx.Err() != nil || err == nil || !s.mayGetUnits(t.ID) {
			return ctx.Err()
		}
		if time.Now().After(until) || !wait.Sleep(ctx, JoinEvery) {
			return dibs.Unavail(dibs.EffectNone, fmt.Errorf("shard %s does not fit together with the ledger, and units may have come from others: %w", t.ID, err))
		}
	}
}

// settleAll settles each shard of a campaign as far as the others let it, until none goes on. An
// error says which of the others could not be settled.
func (s *Loader) settleAll(ctx context.Context, t *Shard, until time.Time) error {
	var unknown error
	for _, one := range t.l.Shards {
		if one != t && !one.unknown() {
			// The ledger may have gone back for a shard on which nothing happens, too: it is opened again then.
			if _, err := s.settler.askPosition(ctx, one); err != nil {
				return err
			}
		}
		if one != t && one.unknown() {
			unknown = fmt.Errorf("shard %s is not open yet: %w", one.ID, dibs.ErrNotOpen)
		}
	}
	if unknown != nil {
		return unknown
	}
	for moved, lack := true, true; moved && lack; {
		moved, lack = false, false
		for _, one := range t.l.Shards {
			before := one.At()
			err := s.settler.settleTail(ctx, one, false)
			switch {
			case errors.Is(err, ErrNotLeft):
				lack = true
			case err != nil:
				return fmt.Errorf("shard %s cannot be settled: %w", one.ID, err)
			case one != t && one.unknown():
				return fmt.Errorf("shard %s is being opened: %w", one.ID, dibs.ErrNotOpen)
			}
			moved = moved || before.Before(one.At())
		}
		if moved && lack && time.Now().After(until) {
			return fmt.Errorf("the shards of campaign %s are still being settled: %w", t.l.Def().ID, dibs.ErrNotOpen)
		}
	}
	return nil
}

// SettleTails settles what the journals of some shards have and the ledger lacks, of a
// campaign that is over: nothing loads it any more. givenUp says that the ledger will not
// get what it lacks of other shards, as after a repair: else it is waited for, and the error
// is ErrNotLeft meanwhile.
func (s *Loader) SettleTails(ctx context.Context, c *dibs.Campaign, ids []dibs.ShardID, givenUp bool) error {
	l := NewCampaign(c)
	var shards []*Shard
	for _, id := range ids {
		shards = append(shards, newShard(id, l))
	}
	return s.settleShards(ctx, shards, givenUp)
}

// settleShards is SettleTails for shards that this node may have opened before.
func (s *Loader) settleShards(ctx context.Context, shards []*Shard, givenUp bool) error {
	var failed error
	for moved := true; moved && ctx.Err() == nil; {
		moved = false
		var waiting []*Shard
		for _, t := range shards {
			before := t.At()
			err := s.settleShardTail(ctx, t, false)
			if errors.Is(err, ErrNotLeft) {
				waiting = append(waiting, t)
			} else {
				failed = errors.Join(failed, err)
			}
			moved = moved || before.Before(t.At())
		}
		shards = waiting
	}
	for _, t := range shards {
		if givenUp || !s.mayGetUnits(t.ID) {
			failed = errors.Join(failed, s.settleShardTail(ctx, t, true))
		} else {
			failed = errors.Join(failed, fmt.Errorf("shard %s: %w", t.ID, ErrNotLeft))
		}
	}
	return errors.Join(failed, ctx.Err())
}

// settleTailOf is SettleTails for one shard, and for the others what it may need of them.
func (s *Loader) settleTailOf(ctx context.Context, c *dibs.Campaign, id dibs.ShardID) error {
	var all []dibs.ShardID
	for i := range c.Shards {
		all = append(all, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)})
	}
	if s.SettleTails(ctx, c, all, false) == nil {
		return nil
	}
	// The trouble of another shard is not this one's.
	return s.SettleTails(ctx, c, []dibs.ShardID{id}, false)
}
