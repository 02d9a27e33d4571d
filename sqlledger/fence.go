package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// forgetServer is how long a server stays listed that was not seen.
const forgetServer = 24 * time.Hour

// Fence implements dibs.Settlement. Like a load it drops the shard's waiting
// commands: the next load counts what they carry.
func (l *Ledger) Fence(ctx context.Context, shard dibs.ShardID, by dibs.Opener) (dibs.ShardTotals, error) {
	var t dibs.ShardTotals
	err := l.write(ctx, "fence shard "+shard.String(), func(s *session) error {
		if _, err := l.raiseEpoch(ctx, s, shard, by); err != nil {
			return err
		}
		var err error
		t, err = readTotals(ctx, s, shard)
		return err
	})
	return t, err
}

// raiseEpoch opens the shard's next epoch, which is beyond the opener's too, drops
// its waiting commands, and returns the epoch. The shard's row stays locked.
func (l *Ledger) raiseEpoch(ctx context.Context, s *session, shard dibs.ShardID, by dibs.Opener) (uint16, error) {
	var epoch uint16
	var holder string
	err := s.row(ctx, `SELECT epoch, server FROM positions WHERE campaign = ? AND shard = ?`+s.d.forUpdate,
		[]any{shard.Campaign, shard.Shard}, &epoch, &holder)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, notFound(aShard, shard)
	}
	if err != nil {
		return 0, err
	}
	if holder != "" && holder != by.Server && by.Epoch < epoch {
		// The opener's server has nothing of the epoch that the holder was given.
		if err := l.isSilent(ctx, s, holder); err != nil {
			return 0, fmt.Errorf("shard %s: %w", shard, err)
		}
	}
	if epoch = max(epoch, by.Epoch); epoch >= dibs.MaxEpoch {
		return 0, dibs.Unavail(dibs.EffectNone, fmt.Errorf("sqlledger: shard %s has used up its %d epochs", shard, dibs.MaxEpoch))
	}
	epoch++
	if _, err := s.exec(ctx, `UPDATE positions SET epoch = ?, server = ? WHERE campaign = ? AND shard = ?`,
		epoch, by.Server, shard.Campaign, shard.Shard); err != nil {
		return 0, err
	}
	if by.Server != "" {
		// Whoever asks before the next SeeServers finds the new holder alive.
		now, err := l.sharedNow(ctx, s)
		if err == nil {
			err = noteSeen(ctx, s, by.Server, now)
		}
		if err != nil {
			return 0, err
		}
	}
	_, err = s.exec(ctx, `DELETE FROM outbox WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard)
	return epoch, err
}

// noteSeen notes when a server was seen alive.
func noteSeen(ctx context.Context, s *session, server string, now int64) error {
	fresh, err := s.insertNew(ctx, `INSERT INTO engine_servers (server, seen_at) VALUES (?,?)`, server, now)
	if err == nil && fresh == 0 {
		_, err = s.exec(ctx, `UPDATE engine_servers SET seen_at = ? WHERE server = ?`, now, server)
	}
	return err
}

// isSilent returns ErrElsewhere when a server was seen within ServerLife.
func (l *Ledger) isSilent(ctx context.Context, s *session, server string) error {
	now, err := l.sharedNow(ctx, s)
	if err != nil {
		return err
	}
	var seen int64
	err = s.row(ctx, `SELECT seen_at FROM engine_servers WHERE server = ?`, []any{server}, &seen)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil && now-seen < dibs.ServerLife.Milliseconds():
		return dibs.ErrElsewhere
	}
	return err
}

// SeeServers implements dibs.Settlement.
func (l *Ledger) SeeServers(ctx context.Context, seen, gone []string) (elsewhere []dibs.ShardID, err error) {
	err = l.write(ctx, "note the servers that are alive", func(s *session) error {
		now, err := l.sharedNow(ctx, s)
		if err != nil {
			return err
		}
		for _, server := range gone {
			if _, err := s.exec(ctx, `DELETE FROM engine_servers WHERE server = ?`, server); err != nil {
				return err
			}
		}
		for _, server := range seen {
			if err := noteSeen(ctx, s, server, now); err != nil {
				return err
			}
		}
		if _, err = s.exec(ctx, `DELETE FROM engine_servers WHERE seen_at < ?`, now-forgetServer.Milliseconds()); err != nil {
			return err
		}
		elsewhere, err = heldElsewhere(ctx, s, seen, now)
		return err
	})
	return elsewhere, err
}

// heldElsewhere lists the shards of live campaigns that other servers hold.
func heldElsewhere(ctx context.Context, s *session, mine []string, now int64) (found []dibs.ShardID, err error) {
	err = s.each(ctx, `SELECT p.campaign, p.shard, p.server FROM campaigns c JOIN positions p ON p.campaign = c.number
		WHERE c.state IN (?,?) AND c.ends_at > ? AND p.server <> ''`,
		[]any{string(dibs.Published), string(dibs.PausedState), now}, func(rows *sql.Rows) error {
			var id dibs.ShardID
			var server string
			err := rows.Scan(&id.Campaign, &id.Shard, &server)
			if err == nil && !slices.Contains(mine, server) {
				found = append(found, id)
			}
			return err
		})
	return found, err
}

// SkipTo implements dibs.Settlement.
func (l *Ledger) SkipTo(ctx context.Context, shard dibs.ShardID, from, to dibs.Cursor) error {
	return l.write(ctx, "give up a part of the journal of shard "+shard.String(), func(s *session) error {
		now, err := lockShard(ctx, s, shard)
		if err != nil {
			return err
		}
		if now.position != from || !from.Before(to) {
			return dibs.ErrPositionMoved
		}
		// The epoch is raised beyond the place, which the table demands, and the server
		// that holds the shard stays the same.
		_, err = s.exec(ctx, `UPDATE positions SET epoch = ?, pos_epoch = ?, pos_seq = ? WHERE campaign = ? AND shard = ?`,
			max(now.epoch, to.Epoch)+1, to.Epoch, to.Seq, shard.Campaign, shard.Shard)
		return err
	})
}

// passed says why the compare-and-set of a batch changed nothing.
func passed(ctx context.Context, s *session, b *dibs.Batch) error {
	var epoch uint16
	err := s.row(ctx, `SELECT epoch FROM positions WHERE campaign = ? AND shard = ?`, []any{b.Shard.Campaign, b.Shard.Shard}, &epoch)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return notFound(aShard, b.Shard)
	case err == nil && epoch != b.Fence:
		return fmt.Errorf("%w: shard %s was read under epoch %d and is in epoch %d", dibs.ErrFenced, b.Shard, b.Fence, epoch)
	case err == nil:
		return dibs.ErrPositionMoved
	}
	return err
}
