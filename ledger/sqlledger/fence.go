package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// forgetServer is how long a server stays listed after it was seen last.
const forgetServer = 24 * time.Hour

// Fence raises a shard's epoch and returns its totals: no batch that was read
// before is taken any more. Like a load it drops the shard's waiting commands,
// since the next load counts what they carry. ErrPositionMoved when epoch or position
// are not those of seen any more; ErrElsewhere as in LoadShard, ErrNotFound.
func (st *Settlement) Fence(ctx context.Context, shard dibs.ShardID, by live.Opener, seen live.ShardTotals) (live.ShardTotals, error) {
	return sqldb.Result(ctx, st.db.Write, "fence shard "+shard.String(), func(s *sqldb.Session) (t live.ShardTotals, err error) {
		now, err := lockShard(ctx, s, shard)
		if err == nil && (now.epoch != seen.Epoch || now.position != seen.Position) {
			err = dibs.ErrPositionMoved
		}
		if err == nil {
			_, err = raiseEpoch(ctx, s, shard, by)
		}
		if err != nil {
			return t, err
		}
		return readTotals(ctx, s, shard)
	})
}

// raiseEpoch opens the shard's next epoch, which is beyond the opener's too,
// notes where, drops its waiting commands, and returns the epoch. The shard's row
// stays locked. A shard that is on another deployment is live.ErrOtherDeployment.
func raiseEpoch(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, by live.Opener) (uint16, error) {
	var epoch uint16
	var holder string
	var placed int
	if err := s.Row(ctx, `SELECT epoch, server, deployment FROM positions WHERE campaign = ? AND shard = ?`+s.ForUpdate,
		[]any{shard.Campaign, shard.Shard}, &epoch, &holder, &placed); err != nil {
		return 0, orNotFound(err, aShard, shard)
	}
	// Where it is placed another node may be opening it, or selling.
	if placed != 0 && by.Deployment != 0 && placed != by.Deployment {
		return 0, dibs.Unavail(dibs.EffectNone, fmt.Errorf("shard %s is on deployment %d, not %d: %w", shard, placed, by.Deployment, live.ErrOtherDeployment))
	}
	// An opener that has entries of this very epoch has the holder's history,
	// as a promoted replica does, and need not wait for the holder's silence.
	if holder != "" && holder != by.Server && by.Epoch < epoch {
		err := checkSilent(ctx, s, holder)
		if errors.Is(err, dibs.ErrElsewhere) && by.Server != "" {
			err = mayTake(ctx, s, by.Server, holder)
		}
		if err != nil {
			return 0, fmt.Errorf("shard %s: %w", shard, err)
		}
	}
	// Beyond both: a position of the new epoch exists neither in the ledger nor
	// in the journal of the opener's server.
	if epoch = max(epoch, by.Epoch); epoch >= dibs.MaxEpoch {
		return 0, dibs.Unavail(dibs.EffectNone, fmt.Errorf("sqlledger: shard %s has used up its %d epochs", shard, dibs.MaxEpoch))
	}
	epoch++
	if err := s.Do(ctx, `UPDATE positions SET epoch = ?, server = ?, deployment = ? WHERE campaign = ? AND shard = ?`,
		epoch, by.Server, by.Deployment, shard.Campaign, shard.Shard); err != nil {
		return 0, err
	}
	if by.Server != "" {
		// A process that asks before the next SeeServers finds the new holder
		// alive.
		now, err := s.SharedNow(ctx)
		if err == nil {
			err = saveSeen(ctx, s, by.Server, now)
		}
		if err != nil {
			return 0, err
		}
	}
	return epoch, s.Do(ctx, `DELETE FROM outbox WHERE campaign = ? AND shard = ?`, shard.Campaign, shard.Shard)
}

// saveSeen stores when a server was seen alive.
func saveSeen(ctx context.Context, s *sqldb.Session, server string, now int64) error {
	fresh, err := s.InsertNew(ctx, `INSERT INTO engine_servers (server, seen_at) VALUES (?,?)`, server, now)
	if err == nil && fresh == 0 {
		err = s.Do(ctx, `UPDATE engine_servers SET seen_at = ? WHERE server = ?`, now, server)
	}
	return err
}

// checkSilent returns ErrElsewhere when a server was seen within ServerLife. A
// server that was never seen, or was told to be gone, is silent.
func checkSilent(ctx context.Context, s *sqldb.Session, server string) error {
	now, err := s.SharedNow(ctx)
	if err != nil {
		return err
	}
	seen, err := sqldb.Get[int64](ctx, s, `SELECT seen_at FROM engine_servers WHERE server = ?`, server)
	switch {
	case isNoRows(err):
		return nil
	case err == nil && now-seen < dibs.ServerLife.Milliseconds():
		return dibs.ErrElsewhere
	}
	return err
}

// mayTake returns nil when a server may take a shard that another one holds, and ErrElsewhere
// otherwise. After a failover both may live on, and each have opened some shards while the other
// was not seen: then the nodes of both wait for the rest, as long as both live. When both wait, this
// one for longer than a server counts as alive, it gets the rest if it holds more shards of live
// campaigns, or as many and the first.
func mayTake(ctx context.Context, s *sqldb.Session, server, other string) error {
	now, err := s.SharedNow(ctx)
	if err != nil {
		return err
	}
	var waiting int
	lately := now - dibs.ServerLife.Milliseconds()
	if err := s.Row(ctx, `SELECT COUNT(*) FROM engine_servers WHERE waits_at >= ? AND (server = ? OR server = ? AND waits_since < ?)`,
		[]any{lately, other, server, lately}, &waiting); err != nil {
		return err
	}
	if waiting < 2 {
		return dibs.ErrElsewhere
	}
	// A fraction, since the number of a campaign times that of the shards is more than an INTEGER of PostgreSQL's.
	more, err := sqldb.Get[string](ctx, s, `SELECT p.server FROM campaigns c JOIN positions p ON p.campaign = c.number
		WHERE c.state IN (?,?) AND c.ends_at > ? AND p.server IN (?,?)
		GROUP BY p.server ORDER BY COUNT(*) DESC, MIN(p.campaign * 64.0 + p.shard) LIMIT 1`,
		string(dibs.Published), string(dibs.PausedState), now, server, other)
	if isNoRows(err) || err == nil && more != server {
		return dibs.ErrElsewhere
	}
	return err
}

// noteWaiting notes that a server was refused a shard just now. One that has never been seen is
// not noted.
func (st *Settlement) noteWaiting(ctx context.Context, server string) error {
	return st.db.Write(ctx, "note a server that waits", func(s *sqldb.Session) error {
		now, err := s.SharedNow(ctx)
		if err != nil {
			return err
		}
		return s.Do(ctx, `UPDATE engine_servers SET waits_since = CASE WHEN waits_at < ? THEN ? ELSE waits_since END, waits_at = ?
			WHERE server = ?`, now-dibs.ServerLife.Milliseconds(), now, now, server)
	})
}

// SeeServers notes which servers of the engine were seen alive just now, by the
// clock that all processes of the ledger share, and which are gone. It returns
// the shards of live campaigns that servers hold which are not among the seen
// ones.
func (st *Settlement) SeeServers(ctx context.Context, seen, gone []string) (elsewhere []dibs.ShardID, err error) {
	return sqldb.Result(ctx, st.db.Write, "note the servers that are alive", func(s *sqldb.Session) ([]dibs.ShardID, error) {
		now, err := s.SharedNow(ctx)
		if err != nil {
			return nil, err
		}
		for _, server := range gone {
			if err := s.Do(ctx, `DELETE FROM engine_servers WHERE server = ?`, server); err != nil {
				return nil, err
			}
		}
		for _, server := range seen {
			if err := saveSeen(ctx, s, server, now); err != nil {
				return nil, err
			}
		}
		if err := s.Do(ctx, `DELETE FROM engine_servers WHERE seen_at < ?`, now-forgetServer.Milliseconds()); err != nil {
			return nil, err
		}
		return heldElsewhere(ctx, s, seen, now)
	})
}

// heldElsewhere lists the shards of live campaigns that other servers hold. A
// shard without a server is held by an engine inside of a process.
func heldElsewhere(ctx context.Context, s *sqldb.Session, mine []string, now int64) (found []dibs.ShardID, err error) {
	err = s.Each(ctx, `SELECT p.campaign, p.shard, p.server FROM campaigns c JOIN positions p ON p.campaign = c.number
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

// SkipTo moves a shard's committed position forward without settling anything:
// an administrator has given up what the journal had in between. It raises the
// epoch, as Fence does. ErrPositionMoved when epoch or position are not those of seen
// any more, or to is not behind them.
func (st *Settlement) SkipTo(ctx context.Context, shard dibs.ShardID, seen live.ShardTotals, to dibs.Cursor) error {
	return st.db.Write(ctx, "skip a part of the journal of shard "+shard.String(), func(s *sqldb.Session) error {
		now, err := lockShard(ctx, s, shard)
		if err != nil {
			return err
		}
		if now.epoch != seen.Epoch || now.position != seen.Position || !now.position.Before(to) {
			return dibs.ErrPositionMoved
		}
		// The epoch is raised beyond the position, which the table demands. The
		// server that holds the shard stays the same.
		return s.Do(ctx, `UPDATE positions SET epoch = ?, pos_epoch = ?, pos_seq = ? WHERE campaign = ? AND shard = ?`,
			max(now.epoch, to.Epoch)+1, to.Epoch, to.Seq, shard.Campaign, shard.Shard)
	})
}

// shardNow is a shard's row, kept from others until the transaction ends.
type shardNow struct {
	epoch    uint16
	position dibs.Cursor
	// left is what the shard and its campaign both have left.
	left int64
}

// lockShard locks the rows of a shard and its campaign, in the order in which
// settling does. A missing shard is ErrNotFound.
func lockShard(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) (now shardNow, err error) {
	if err := s.Row(ctx, `SELECT epoch, pos_epoch, pos_seq, stock_left FROM positions WHERE campaign = ? AND shard = ?`+s.ForUpdate,
		[]any{shard.Campaign, shard.Shard}, &now.epoch, &now.position.Epoch, &now.position.Seq, &now.left); err != nil {
		return now, orNotFound(err, aShard, shard)
	}
	left, err := sqldb.Get[int64](ctx, s, `SELECT stock_left FROM campaigns WHERE number = ?`+s.ForUpdate, shard.Campaign)
	now.left = max(min(now.left, left), 0)
	return now, err
}

// Totals returns a shard's sums. Every shard of a campaign has them from the
// start; Epoch is 0 until the shard is loaded for the first time. ErrNotFound.
func (st *Settlement) Totals(ctx context.Context, shard dibs.ShardID) (live.ShardTotals, error) {
	return sqldb.Result(ctx, st.db.Read, "read totals", func(s *sqldb.Session) (live.ShardTotals, error) {
		return readTotals(ctx, s, shard)
	})
}

// readTotals is Totals within a transaction.
func readTotals(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) (t live.ShardTotals, err error) {
	err = s.Row(ctx, `SELECT epoch, pos_epoch, pos_seq, stock, stock_left, pending, confirmed, released, refunded
		FROM positions WHERE campaign = ? AND shard = ?`, []any{shard.Campaign, shard.Shard},
		&t.Epoch, &t.Position.Epoch, &t.Position.Seq, &t.Stock, &t.StockLeft,
		&t.Pending, &t.Confirmed, &t.Released, &t.Refunded)
	return t, orNotFound(err, aShard, shard)
}
