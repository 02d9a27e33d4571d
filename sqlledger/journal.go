package sqlledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// JournalTable is the embedded engine's journal in a table: of a file of its
// own, or of the ledger's database in a server. It is safe for concurrent use;
// appends wait for one another.
type JournalTable struct {
	d     *dialect
	place string
	opts  Options
	lock  owning
	// writers has one session. Who appends or trims holds it, so that neither
	// ever waits for the file's own lock.
	writers *pool
	readers *pool
	// suspect is the last failed append's error, until Reopen.
	mu      sync.Mutex
	suspect error
	// generation is that of the last Acquire.
	generation atomic.Int64
}

// owning is what keeps a second process from a journal. It ends with the
// process that took it.
type owning interface {
	// take takes it; taken says that it was not held by this value before.
	// ErrOwned when another process has it.
	take(ctx context.Context) (taken bool, err error)
	// release gives it back; without it, it does nothing.
	release() error
}

var _ dibs.JournalStore = (*JournalTable)(nil)

// errSuspect: an append failed and Reopen was not called since.
var errSuspect = errors.New("sqlledger: an earlier append failed: reopen the journal first")

// OpenSQLiteJournal opens the journal in a file, and makes the file and its
// folder, readable by their owner alone, when they are missing. Beside it lies
// a file named like it with `.lock` at the end, which Acquire locks.
func OpenSQLiteJournal(ctx context.Context, path string, opts Options) (*JournalTable, error) {
	path, err := prepareFile(ctx, path, journalTuning)
	if err != nil {
		return nil, err
	}
	return openJournal(ctx, sqliteDialect("journal_sqlite", journalTuning), path, &fileLock{path: path + ".lock"}, opts.WithDefaults())
}

// openJournal makes a journal of any dialect; without a lock, it is one of the
// server's.
func openJournal(ctx context.Context, d *dialect, place string, lock owning, opts Options) (*JournalTable, error) {
	if err := d.bounded(opts); err != nil {
		return nil, err
	}
	t := &JournalTable{d: d, place: place, opts: opts, lock: lock}
	var err error
	if t.writers, err = newPool(t.d, place, forWriting, 1); err != nil {
		return nil, err
	}
	if t.readers, err = newPool(t.d, place, forReading, opts.Readers); err != nil {
		return nil, errors.Join(err, t.writers.close())
	}
	if lock == nil {
		own := &ownerLock{writers: t.writers, fenced: t.fenced, every: beatEvery}
		t.lock, t.writers.greet = own, own.greet
	}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// prepare makes sure that the schema fits. Migrating takes the lock: nobody may
// be appending meanwhile.
func (t *JournalTable) prepare(ctx context.Context) error {
	ask := t.opts
	ask.Migrate = false
	err := t.d.ready(ctx, t.place, ask)
	if err == nil || !t.opts.Migrate || !errors.Is(err, errOld) {
		return err
	}
	_, err = t.Migrate(ctx)
	return err
}

// Migrate applies the migrations that are missing and returns how many those
// were. ErrOwned when another process owns the journal.
func (t *JournalTable) Migrate(ctx context.Context) (applied int, err error) {
	mine, err := t.own(ctx)
	if err != nil {
		return 0, t.d.explain("migrate the journal", err)
	}
	applied, err = t.d.migrate(ctx, t.place)
	if mine {
		err = errors.Join(err, t.lock.release())
	}
	return applied, err
}

// SchemaVersion returns the version of the schema and the one that this
// program wants.
func (t *JournalTable) SchemaVersion(ctx context.Context) (current, want int64, err error) {
	return t.d.versions(ctx, t.place)
}

// Append implements dibs.JournalStore. After a failed commit it refuses until
// Reopen, so that nothing is appended behind entries whose fate is unknown; the
// error's Effect tells a failed commit from a failure before it.
func (t *JournalTable) Append(ctx context.Context, generation int64, rows []dibs.JournalRow) error {
	if err := t.trouble(); err != nil {
		return dibs.Unavail(dibs.EffectNone, errors.Join(errSuspect, err))
	}
	err := t.writers.transact(ctx, t.d.begin, func(s *session) error {
		for i := range rows {
			r := &rows[i]
			// The row is written only if the lease is still of this generation.
			n, err := s.exec(ctx, `INSERT INTO journal (campaign, shard, epoch, first_seq, last_seq, at, payload)
				SELECT ?,?,?,?,?,?,? FROM lease WHERE id = 1 AND generation = ?`+s.d.forShare,
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
	var unknown *unknownEffect
	if errors.As(err, &unknown) {
		t.setTrouble(err)
	}
	return t.d.explain("append to the journal", err)
}

func (t *JournalTable) trouble() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.suspect
}

func (t *JournalTable) setTrouble(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = err
}

// Reopen implements dibs.JournalStore. It ends with a commit of its own, which
// takes the place of whatever a failed append left in the log's tail: from then
// on, and after a crash too, Last tells what is stored.
func (t *JournalTable) Reopen(ctx context.Context) error {
	cause := t.trouble()
	s, err := t.writers.take(ctx)
	if err == nil {
		err = errors.Join(s.drop(), t.writers.give(s))
	}
	if err == nil {
		err = t.writers.transact(ctx, t.d.begin, func(s *session) error {
			_, err := s.exec(ctx, `UPDATE lease SET reopened = reopened + 1 WHERE id = 1`)
			return err
		})
	}
	// After a failed write or sync the log's pages may be in memory only: they
	// are copied into the file and the log begins anew.
	if err == nil && cause != nil && t.d.server == nil {
		err = t.checkpoint(ctx)
	}
	if err == nil {
		t.setTrouble(nil)
	}
	return t.d.explain("reopen the journal", err)
}

// checkpoint copies the log into the file and begins it anew.
func (t *JournalTable) checkpoint(ctx context.Context) error {
	s, err := t.writers.take(ctx)
	if err != nil {
		return err
	}
	var busy, logged, copied int
	err = s.row(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &logged, &copied)
	if err == nil && busy != 0 {
		err = errors.New("readers kept the log from being copied back")
	}
	return errors.Join(err, t.writers.give(s))
}

// Close implements dibs.JournalStore.
func (t *JournalTable) Close() error {
	if t.d.server != nil {
		// Asking for it is surer than the server's noticing that a connection is
		// gone; when it cannot be asked any more, it will notice.
		_ = t.lock.release()
	}
	return errors.Join(t.readers.close(), t.writers.close(), t.lock.release())
}
