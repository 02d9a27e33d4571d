package simulation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/fresh"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// base is the database of many runs, one after the other: the SQL ledger itself on
// a file of SQLite. It is opened once, since opening it and compiling its statements
// takes longer than all that many a run asks of it.
//
// The file is an empty ledger and never changes. All that a run writes stands in the
// write-ahead log, which stays far below the length at which SQLite copies it into
// the file; renew empties it. The connections are opened before the first run: what
// they are made of belongs to no run's bubble.
//
// During a run all nodes call it at once: mu guards said, clock is replaced as a
// whole, and dumps is used by the goroutine that does harm alone. renew runs between
// two runs, when no goroutine of a run is left.
type base struct {
	ledger *sqlledger.Ledger
	ids    dibs.ClaimIDs
	path   string
	// written is when the file was written last, which must not change.
	written time.Time
	// log is the write-ahead log and index what SQLite's connections share to read it:
	// it begins with its header, twice.
	log, index *os.File
	clock      atomic.Pointer[func() time.Time]
	dumps      int

	mu sync.Mutex
	// said are the answers to the questions of this run that nodes ask again and again.
	said map[question]answer
}

// hurry has SQLite leave out what only matters when the machine dies, which no run has
// happen: commits need not be on the disk.
var hurry = sync.OnceFunc(func() {
	sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
		_, err := c.ExecContext(context.Background(), "PRAGMA synchronous = OFF", nil)
		return err
	})
})

// openBase opens the database for runs; t closes it. It must not be called in a bubble.
func openBase(t testing.TB) (*base, error) {
	ctx := context.Background()
	hurry()
	dir := fresh.Folder(t, "ledger of simulations", func(dir string) error {
		l, err := sqlledger.OpenSQLite(ctx, filepath.Join(dir, "ledger.db"), sqlledger.Options{Migrate: true})
		if err != nil {
			return err
		}
		_, err = idgen.ForClaims(ctx, l)
		return errors.Join(err, l.Close())
	})
	b := &base{path: filepath.Join(dir, "ledger.db")}
	var err error
	if b.ledger, err = sqlledger.OpenSQLite(ctx, b.path, sqlledger.Options{Readers: 1, Now: b.now}); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := errors.Join(b.log.Close(), b.index.Close(), b.ledger.Close()); err != nil {
			t.Errorf("closing the ledger of simulations: %v", err)
		}
	})
	// This reads once and writes once: both connections are there.
	if b.ids, err = idgen.ForClaims(ctx, b.ledger); err != nil {
		return nil, err
	}
	if err := b.ledger.DropRequests(ctx, time.Time{}); err != nil {
		return nil, err
	}
	if b.log, err = os.OpenFile(b.path+"-wal", os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if b.index, err = os.OpenFile(b.path+"-shm", os.O_RDWR, 0); err != nil {
		return nil, err
	}
	b.written, err = b.writtenAt()
	return b, err
}

func (b *base) writtenAt() (time.Time, error) {
	info, err := os.Stat(b.path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// now is the clock of the run.
func (b *base) now() time.Time {
	if clock := b.clock.Load(); clock != nil {
		return (*clock)()
	}
	return time.Now()
}

// renew makes the database an empty ledger for the next run, with a clock. It does
// what a crash does that loses the log: SQLite finds the log's index invalid, reads
// the log again, finds nothing, and goes on from the file. No run may be under way.
func (b *base) renew(clock func() time.Time) error {
	at, err := b.writtenAt()
	if err != nil {
		return err
	}
	if !at.Equal(b.written) {
		return errors.New("simulation: a run has written into the file of the empty ledger")
	}
	if err := b.log.Truncate(0); err != nil {
		return err
	}
	// Without a valid header in the index, no connection can find rows of the last run
	// in it.
	if _, err := b.index.WriteAt(make([]byte, 2*len(state{})), 0); err != nil {
		return err
	}
	b.clock.Store(&clock)
	b.said = map[question]answer{}
	return b.dropDumps()
}

// state names what the database holds: SQLite changes the header of the log's index
// with each transaction that has written something.
type state [48]byte

func (b *base) state() (s state, err error) {
	_, err = b.index.ReadAt(s[:], 0)
	return s, err
}

// question is what nodes ask the ledger again and again; answer is what it said, and
// when.
type (
	question struct {
		what       string
		shard      dibs.ShardID
		aside      live.QuarantineFilter
		from, most int64
	}
	answer struct {
		then state
		said any
	}
)

// polled asks the database a question, unless nothing has been written since it was
// asked last: then it says the same again. keeps tells which answers may be given
// twice: those that no caller can change.
func polled[T any](b *base, q question, keeps func(T) bool, ask func() (T, error)) (T, error) {
	var nothing T
	// The state is read before the question. A write in between makes the answer newer
	// than the state that it is kept under; then the next caller sees another state
	// and asks again.
	now, err := b.state()
	if err != nil {
		return nothing, err
	}
	b.mu.Lock()
	last, asked := b.said[q]
	b.mu.Unlock()
	if asked && last.then == now {
		return last.said.(T), nil
	}
	t, err := ask()
	if err == nil && keeps(t) {
		b.mu.Lock()
		b.said[q] = answer{now, t}
		b.mu.Unlock()
	}
	return t, err
}

// always keeps every answer: for values that are copied to each caller.
func always[T any](T) bool { return true }

// empty keeps empty lists only: a caller may change the elements of a longer one.
func empty[T any](list []T) bool { return len(list) == 0 }

// with lends a connection of its own to the database's file.
// The connection writes no checkpoint, so the file stays the empty ledger. It waits
// at most 10 s for the write lock of a node.
func (b *base) with(ctx context.Context, f func(*sql.Conn) error) error {
	db, err := sql.Open("sqlite", "file:"+b.path+"?_pragma=busy_timeout(10000)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = errors.Join(f(conn), conn.Close())
	}
	return errors.Join(err, db.Close())
}

func (b *base) dumpPath(n int) string { return fmt.Sprintf("%s.dump%d", b.path, n) }

// dump writes the database as it is to a file, which restore takes.
func (b *base) dump(ctx context.Context) (string, error) {
	b.dumps++
	path := b.dumpPath(b.dumps)
	return path, b.with(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	})
}

// dropDumps removes the dumps of the last run.
func (b *base) dropDumps() error {
	for ; b.dumps > 0; b.dumps-- {
		if err := os.Remove(b.dumpPath(b.dumps)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// restore makes the database what it was at a dump, in one transaction: nodes go
// on with it as they do with a server that was failed over to an older copy.
func (b *base) restore(ctx context.Context, dump string) error {
	return b.with(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "ATTACH ? AS dump", dump); err != nil {
			return err
		}
		// SQLite's own tables come last: the rows that are inserted before change the
		// counters in sqlite_sequence.
		tables, err := texts(ctx, c, "SELECT name FROM dump.sqlite_master WHERE type = 'table' ORDER BY name LIKE 'sqlite_%'")
		if err != nil {
			return err
		}
		// Triggers keep rows that never go, and are brought back.
		triggers, err := texts(ctx, c, "SELECT name FROM main.sqlite_master WHERE type = 'trigger'")
		if err != nil {
			return err
		}
		again, err := texts(ctx, c, "SELECT sql FROM main.sqlite_master WHERE type = 'trigger'")
		if err != nil {
			return err
		}
		// IMMEDIATE takes the write lock first: no node can write between the deletion
		// and the copy.
		statements := []string{"BEGIN IMMEDIATE"}
		for _, t := range triggers {
			statements = append(statements, `DROP TRIGGER main."`+t+`"`)
		}
		for _, t := range tables {
			statements = append(statements, `DELETE FROM main."`+t+`"`, `INSERT INTO main."`+t+`" SELECT * FROM dump."`+t+`"`)
		}
		for _, s := range slices.Concat(statements, again, []string{"COMMIT", "DETACH dump"}) {
			if _, err := c.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// texts reads a column.
func texts(ctx context.Context, c *sql.Conn, query string) ([]string, error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		all = append(all, s)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}
