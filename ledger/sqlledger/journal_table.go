package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// journalSchema is the schema of the journal's tables. The lock that one
// process holds on them keeps the journal its own.
//
// A group commit is a blob of some hundred bytes to some hundred kilobytes:
// small pages suit the first, large pages the last. The append that fills the
// log copies it back while claims wait, hence a short log. Measure with
// BenchmarkJournalAppend.
var journalSchema = sqldb.Schema{
	Name: "journal", Files: migrations, Folder: "migrations/journal_",
	File:  sqldb.FileTuning{PageBytes: 8192, CacheKiB: 8 << 10, LogPages: 1024},
	Owned: true, ClusterAdvice: "use --engine redis://…, or a database that is no cluster",
}

// JournalTable is the embedded engine's journal in a table: of a file of its
// own, or of the ledger's database on a server. It is safe for concurrent use;
// appends wait for one another.
//
// The lock says which process is alive: the system ends a file's lock with its
// process, a server its own with the connection. The generation in the lease
// says which process was the last owner: it fences one that lost the lock
// without noticing. There is one connection that writes, so that appends and
// trims never wait for the file's own lock.
//
// suspect, guarded by mu, is the last failed append's error until Reopen: no
// row is appended behind one whose fate is unknown.
type JournalTable struct {
	db      *sqldb.DB
	mu      sync.Mutex
	suspect error
	// generation is that of the last Acquire.
	generation atomic.Int64
}

var _ dibs.JournalStore = (*JournalTable)(nil)

// errSuspect: an append failed and Reopen was not called since.
var errSuspect = errors.New("sqlledger: an earlier append failed: reopen the journal first")

// OpenJournal opens the journal at an address as Open takes it. Beside a file
// lies another one, named like it with `.lock` at the end, which Acquire locks.
// On a server the journal is in the ledger's database, in tables of its own; a
// server of a Galera cluster is refused, since its locks are each server's own.
func OpenJournal(ctx context.Context, address string, opts Options) (*JournalTable, error) {
	c, err := opts.config(1)
	if err != nil {
		return nil, err
	}
	t := &JournalTable{}
	c.Fenced = t.fenced
	if t.db, err = sqldb.Open(ctx, address, &journalSchema, c); err != nil {
		return nil, err
	}
	if err := ensureSchema(ctx, t.db, opts, t.Migrate); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// OpenSQLiteJournal is OpenJournal for a file. It makes the file and its
// folder, readable by their owner alone, when they are missing.
func OpenSQLiteJournal(ctx context.Context, path string, opts Options) (*JournalTable, error) {
	return OpenJournal(ctx, "sqlite:"+path, opts)
}

// Migrate applies the migrations that are missing and returns how many those
// were. It takes the lock meanwhile, so that no process appends. ErrOwned when
// another process owns the journal.
func (t *JournalTable) Migrate(ctx context.Context) (applied int, err error) {
	taken, err := t.lock(ctx, "migrate the journal")
	if err != nil {
		return 0, err
	}
	applied, err = t.db.Migrate(ctx)
	if taken {
		err = errors.Join(err, t.db.Unlock())
	}
	return applied, err
}

// SchemaVersion returns the version of the schema and the one that this program
// wants.
func (t *JournalTable) SchemaVersion(ctx context.Context) (current, want int64, err error) {
	return t.db.SchemaVersion(ctx)
}

// lock takes the lock; taken says that this value did not hold it before. The
// error ErrOwned names the owner.
func (t *JournalTable) lock(ctx context.Context, op string) (taken bool, err error) {
	taken, err = t.db.Lock(ctx, op)
	if errors.Is(err, sqldb.ErrHeld) {
		err = fmt.Errorf("%w (%s): %w", dibs.ErrOwned, t.owner(ctx), err)
	}
	return taken, err
}

// owner says, for people, which process acquired the journal last. It never
// fails: the owner's name is a help beside another error.
func (t *JournalTable) owner(ctx context.Context) string {
	var owner string
	if err := t.db.ReadRow(ctx, "read the journal's owner", `SELECT owner FROM lease WHERE id = 1`, nil, &owner); err != nil {
		return "its owner could not be read: " + err.Error()
	}
	return owner
}

// fenced returns ErrFenced when another process has acquired the journal since
// this one did.
func (t *JournalTable) fenced(ctx context.Context, s *sqldb.Session) error {
	generation, err := s.Number(ctx, `SELECT generation FROM lease WHERE id = 1`)
	if err == nil && generation != t.generation.Load() {
		err = fmt.Errorf("%w: another process took it", dibs.ErrFenced)
	}
	return err
}

// Acquire takes the lock and a new generation of the lease for owner, a name
// for people, and returns the generation. It fences the generation before, this
// process's own too. ErrOwned, naming the owner, when another process has the
// lock; that of a killed process is free at once.
func (t *JournalTable) Acquire(ctx context.Context, owner string) (generation int64, err error) {
	const op = "acquire the journal"
	if _, err := t.lock(ctx, op); err != nil {
		return 0, err
	}
	generation, err = sqldb.Result(ctx, t.db.WriteOnce, op, func(s *sqldb.Session) (int64, error) {
		if err := s.Do(ctx, `UPDATE lease SET owner = ?, generation = generation + 1, acquired_at = ? WHERE id = 1`,
			owner, s.Now().UnixMilli()); err != nil {
			return 0, err
		}
		return sqldb.Get[int64](ctx, s, `SELECT generation FROM lease WHERE id = 1`)
	})
	if err == nil {
		t.generation.Store(generation)
	}
	return generation, err
}

// Append stores rows in one transaction and returns when they are durable.
// ErrFenced when the generation is no longer the lease's: nothing was stored.
// After a failed commit it refuses until Reopen; the error's Effect tells a
// failed commit from a failure before it. One goroutine at a time calls it.
func (t *JournalTable) Append(ctx context.Context, generation int64, rows []dibs.JournalRow) error {
	if err := t.trouble(); err != nil {
		return dibs.Unavail(dibs.EffectNone, errors.Join(errSuspect, err))
	}
	err := t.db.WriteOnce(ctx, "append to the journal", func(s *sqldb.Session) error {
		for i := range rows {
			r := &rows[i]
			// The row is written only if the lease is still of this generation.
			n, err := s.Exec(ctx, `INSERT INTO journal (campaign, shard, epoch, first_seq, last_seq, at, payload)
				SELECT ?,?,?,?,?,?,? FROM lease WHERE id = 1 AND generation = ?`+s.ForShare,
				int64(r.Shard.Campaign), int64(r.Shard.Shard), int64(r.Epoch), int64(r.First), int64(r.Last), r.At, r.Payload, generation)
			if err != nil {
				return err
			}
			if n == 0 {
				return dibs.ErrFenced
			}
		}
		return nil
	})
	if err != nil && t.db.Fault(err) == sqldb.FaultUnknownEffect {
		t.setTrouble(err)
	}
	return err
}

// trouble returns what makes appends unsafe until Reopen; nil when nothing
// does.
func (t *JournalTable) trouble() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.suspect
}

// setTrouble stores what makes appends unsafe; nil for nothing.
func (t *JournalTable) setTrouble(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = err
}

// Reopen replaces the connection whose state is unknown after a failed append.
// It ends with a commit of its own, which overwrites whatever the append left
// at the end of the log: from then on, and after a crash too, Last tells what
// is stored.
func (t *JournalTable) Reopen(ctx context.Context) error {
	const op = "reopen the journal"
	cause := t.trouble()
	err := t.db.Reconnect(ctx, op)
	if err == nil {
		err = t.db.WriteOnce(ctx, op, func(s *sqldb.Session) error {
			return s.Do(ctx, `UPDATE lease SET reopened = reopened + 1 WHERE id = 1`)
		})
	}
	// After a failed write or sync the log's pages may be in memory only. A
	// checkpoint copies them into the file and begins the log anew.
	if err == nil && cause != nil {
		err = t.db.Checkpoint(ctx, op)
	}
	if err == nil {
		t.setTrouble(nil)
	}
	return err
}

// Close releases the lock and closes the connections.
func (t *JournalTable) Close() error { return t.db.Close() }

// trimChunk is how many rows one transaction deletes, so that an append never
// waits long for a trim.
const trimChunk = 32

// Last returns the position of a shard's last entry, trimmed or not; zero for
// none.
func (t *JournalTable) Last(ctx context.Context, shard dibs.ShardID) (dibs.Cursor, error) {
	return sqldb.Result(ctx, t.db.Read, "read the journal's end", func(s *sqldb.Session) (dibs.Cursor, error) {
		at, err := lastRow(ctx, s, shard)
		if isNoRows(err) {
			err = s.Row(ctx, `SELECT epoch, seq FROM journal_ends WHERE campaign = ? AND shard = ?`,
				[]any{shard.Campaign, shard.Shard}, &at.Epoch, &at.Seq)
		}
		if isNoRows(err) {
			err = nil
		}
		return at, err
	})
}

// lastRow reads where the shard's last row ends; sql.ErrNoRows when it has
// none. Rows that were trimmed are not looked at: keepEnd has stored where they
// ended.
func lastRow(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) (at dibs.Cursor, err error) {
	err = s.Row(ctx, `SELECT epoch, last_seq FROM journal WHERE campaign = ? AND shard = ?
		ORDER BY epoch DESC, first_seq DESC LIMIT 1`, []any{shard.Campaign, shard.Shard}, &at.Epoch, &at.Seq)
	return at, err
}

// keepEnd stores where the journal ends when a trim may delete its last row.
func keepEnd(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, upTo dibs.Cursor) error {
	last, err := lastRow(ctx, s, shard)
	if isNoRows(err) || err == nil && upTo.Before(last) {
		return nil
	}
	if err != nil {
		return err
	}
	fresh, err := s.InsertNew(ctx, `INSERT INTO journal_ends (campaign, shard, epoch, seq) VALUES (?,?,?,?)`,
		shard.Campaign, shard.Shard, last.Epoch, last.Seq)
	if err == nil && fresh == 0 {
		err = s.Do(ctx, `UPDATE journal_ends SET epoch = ?, seq = ? WHERE campaign = ? AND shard = ?`,
			last.Epoch, last.Seq, shard.Campaign, shard.Shard)
	}
	return err
}

// ReadRows returns rows that have entries after a position, in order. It stops
// after the row with which they have maxEntries entries or more.
func (t *JournalTable) ReadRows(ctx context.Context, shard dibs.ShardID, after dibs.Cursor, maxEntries int) ([]dibs.JournalRow, error) {
	return sqldb.Result(ctx, t.db.Read, "read the journal", func(s *sqldb.Session) (found []dibs.JournalRow, err error) {
		// The row that contains the position, or ends before it, is where
		// reading the index begins.
		first, err := sqldb.Get[uint32](ctx, s, `SELECT first_seq FROM journal
			WHERE campaign = ? AND shard = ? AND epoch = ? AND first_seq <= ? ORDER BY first_seq DESC LIMIT 1`, shard.Campaign, shard.Shard, after.Epoch, after.Seq)
		if err != nil && !isNoRows(err) {
			return nil, err
		}
		held := 0
		from, args := t.db.Compare([]string{"epoch", "first_seq"}, ">=", after.Epoch, first)
		past, more := t.db.Compare([]string{"epoch", "last_seq"}, ">", after.Epoch, after.Seq)
		args = append(append(append([]any{shard.Campaign, shard.Shard}, args...), more...), maxEntries)
		err = s.Each(ctx, `SELECT epoch, first_seq, last_seq, at, payload FROM journal
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
			err = nil
		}
		return found, err
	})
}

// errEnough ends a reading before its rows end.
var errEnough = errors.New("enough rows")

// entriesAfter counts a row's entries after a position.
func entriesAfter(r *dibs.JournalRow, after dibs.Cursor) int {
	if r.Epoch == after.Epoch && after.Seq >= r.First {
		return int(r.Last) - int(after.Seq)
	}
	return int(r.Last) - int(r.First) + 1
}

// TrimRows deletes rows that end at or before upTo and were stored before a
// time, in milliseconds since 1970. It deletes some rows at a time, so that
// appends go on in between.
func (t *JournalTable) TrimRows(ctx context.Context, shard dibs.ShardID, upTo dibs.Cursor, beforeMS int64) error {
	begins, args := t.db.Compare([]string{"epoch", "first_seq"}, "<=", upTo.Epoch, upTo.Seq)
	ends, more := t.db.Compare([]string{"epoch", "last_seq"}, "<=", upTo.Epoch, upTo.Seq)
	args = append(append(append([]any{shard.Campaign, shard.Shard}, args...), more...), beforeMS, trimChunk)
	for {
		var n int64
		err := t.db.WriteOnce(ctx, "trim the journal", func(s *sqldb.Session) (err error) {
			if err := keepEnd(ctx, s, shard, upTo); err != nil {
				return err
			}
			n, err = s.Exec(ctx, `DELETE FROM journal WHERE id IN (SELECT id FROM (SELECT id FROM journal WHERE campaign = ?
				AND shard = ? AND `+begins+` AND `+ends+` AND at < ? ORDER BY epoch, first_seq LIMIT ?) AS oldest)`, args...)
			return err
		})
		if err != nil || n < trimChunk {
			return err
		}
	}
}

// Shards lists the shards that have rows.
func (t *JournalTable) Shards(ctx context.Context) ([]dibs.ShardID, error) {
	return sqldb.Result(ctx, t.db.Read, "list the journal's shards", func(s *sqldb.Session) (found []dibs.ShardID, err error) {
		at := dibs.ShardID{}
		// From each shard the index leads to the next one, without reading the
		// rows in between.
		relation := ">="
		for {
			next, args := t.db.Compare([]string{"campaign", "shard"}, relation, at.Campaign, at.Shard)
			err := s.Row(ctx, `SELECT campaign, shard FROM journal WHERE `+next+` ORDER BY campaign, shard LIMIT 1`,
				args, &at.Campaign, &at.Shard)
			if isNoRows(err) {
				return found, nil
			}
			if err != nil {
				return nil, err
			}
			found = append(found, at)
			relation = ">"
		}
	})
}

// ExamineJournal says what keeps the memory engine's journal from being on the
// server at an address that Examine found well; nothing when all is well.
func ExamineJournal(ctx context.Context, address string) []dibs.Finding {
	return findings(sqldb.ExamineLock(ctx, address, &journalSchema))
}
