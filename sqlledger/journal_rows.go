package sqlledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/dibs-dev/dibs"
)

// trimChunk is how many rows one transaction deletes, so that an append never
// waits long for a trim.
const trimChunk = 32

// read runs f on a connection that only reads.
func (t *JournalTable) read(ctx context.Context, op string, f func(*session) error) error {
	s, err := t.readers.take(ctx)
	if err != nil {
		return t.d.explain(op, err)
	}
	return t.d.explain(op, errors.Join(s.call.late(f(s)), t.readers.give(s)))
}

// Last implements dibs.JournalStore.
func (t *JournalTable) Last(ctx context.Context, shard dibs.ShardID) (dibs.Cursor, error) {
	var at dibs.Cursor
	err := t.read(ctx, "read the journal's end", func(s *session) error {
		err := lastRow(ctx, s, shard, &at)
		if errors.Is(err, sql.ErrNoRows) {
			err = s.row(ctx, `SELECT epoch, seq FROM journal_ends WHERE campaign = ? AND shard = ?`,
				[]any{shard.Campaign, shard.Shard}, &at.Epoch, &at.Seq)
		}
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return at, err
}

// lastRow reads where the shard's last row ends; sql.ErrNoRows when it has none.
func lastRow(ctx context.Context, s *session, shard dibs.ShardID, at *dibs.Cursor) error {
	return s.row(ctx, `SELECT epoch, last_seq FROM journal WHERE campaign = ? AND shard = ?
		ORDER BY epoch DESC, first_seq DESC LIMIT 1`, []any{shard.Campaign, shard.Shard}, &at.Epoch, &at.Seq)
}

// keepEnd notes where the journal ends when no row of it may be left behind a trim.
func keepEnd(ctx context.Context, s *session, shard dibs.ShardID, upTo dibs.Cursor) error {
	var last dibs.Cursor
	err := lastRow(ctx, s, shard, &last)
	if errors.Is(err, sql.ErrNoRows) || err == nil && upTo.Before(last) {
		return nil
	}
	if err != nil {
		return err
	}
	fresh, err := s.insertNew(ctx, `INSERT INTO journal_ends (campaign, shard, epoch, seq) VALUES (?,?,?,?)`,
		shard.Campaign, shard.Shard, last.Epoch, last.Seq)
	if err == nil && fresh == 0 {
		_, err = s.exec(ctx, `UPDATE journal_ends SET epoch = ?, seq = ? WHERE campaign = ? AND shard = ?`,
			last.Epoch, last.Seq, shard.Campaign, shard.Shard)
	}
	return err
}

// ReadRows implements dibs.JournalStore.
func (t *JournalTable) ReadRows(ctx context.Context, shard dibs.ShardID, after dibs.Cursor, maxEntries int) ([]dibs.JournalRow, error) {
	var found []dibs.JournalRow
	held := 0
	err := t.read(ctx, "read the journal", func(s *session) error {
		// The row that holds the place, or ends before it, is where the index
		// is entered.
		var first uint32
		err := s.row(ctx, `SELECT first_seq FROM journal WHERE campaign = ? AND shard = ? AND epoch = ? AND first_seq <= ?
			ORDER BY first_seq DESC LIMIT 1`, []any{shard.Campaign, shard.Shard, after.Epoch, after.Seq}, &first)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		from, args := t.d.compare([]string{"epoch", "first_seq"}, ">=", after.Epoch, first)
		past, more := t.d.compare([]string{"epoch", "last_seq"}, ">", after.Epoch, after.Seq)
		args = append(append(append([]any{shard.Campaign, shard.Shard}, args...), more...), maxEntries)
		err = s.each(ctx, `SELECT epoch, first_seq, last_seq, at, payload FROM journal
			WHERE campaign = ? AND shard = ? AND `+from+` AND `+past+` ORDER BY epoch, first_seq LIMIT ?`,
			args, func(rows *sql.Rows) error {
				r := dibs.JournalRow{Shard: shard}
				if err := rows.Scan(&r.Epoch, &r.First, &r.Last, &r.At, &r.Payload); err != nil {
					return err
				}
				found = append(found, r)
				if held += entriesAfter(&r, after); held >= maxEntries {
					return errEnough
				}
				return nil
			})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// errEnough ends a reading before its rows end.
var errEnough = errors.New("enough rows")

// entriesAfter counts a row's entries after a place.
func entriesAfter(r *dibs.JournalRow, after dibs.Cursor) int {
	if r.Epoch == after.Epoch && after.Seq >= r.First {
		return int(r.Last) - int(after.Seq)
	}
	return int(r.Last) - int(r.First) + 1
}

// TrimRows implements dibs.JournalStore. It deletes some rows at a time and
// lets appends pass between.
func (t *JournalTable) TrimRows(ctx context.Context, shard dibs.ShardID, upTo dibs.Cursor, beforeMS int64) error {
	begins, args := t.d.compare([]string{"epoch", "first_seq"}, "<=", upTo.Epoch, upTo.Seq)
	ends, more := t.d.compare([]string{"epoch", "last_seq"}, "<=", upTo.Epoch, upTo.Seq)
	args = append(append(append([]any{shard.Campaign, shard.Shard}, args...), more...), beforeMS, trimChunk)
	for {
		var n int64
		err := t.writers.transact(ctx, t.d.begin, func(s *session) (err error) {
			if err := keepEnd(ctx, s, shard, upTo); err != nil {
				return err
			}
			n, err = s.exec(ctx, `DELETE FROM journal WHERE id IN (SELECT id FROM (SELECT id FROM journal WHERE campaign = ?
				AND shard = ? AND `+begins+` AND `+ends+` AND at < ? ORDER BY epoch, first_seq LIMIT ?) AS oldest)`, args...)
			return err
		})
		if err != nil || n < trimChunk {
			return t.d.explain("trim the journal", err)
		}
	}
}

// Shards implements dibs.JournalStore.
func (t *JournalTable) Shards(ctx context.Context) ([]dibs.ShardID, error) {
	var found []dibs.ShardID
	err := t.read(ctx, "list the journal's shards", func(s *session) error {
		at := dibs.ShardID{}
		// From each shard the index leads to the next: this does not read the
		// rows between.
		relation := ">="
		for {
			next, args := t.d.compare([]string{"campaign", "shard"}, relation, at.Campaign, at.Shard)
			err := s.row(ctx, `SELECT campaign, shard FROM journal WHERE `+next+` ORDER BY campaign, shard LIMIT 1`,
				args, &at.Campaign, &at.Shard)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			found = append(found, at)
			relation = ">"
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
