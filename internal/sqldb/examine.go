package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// Examine looks at the database that a schema is, or will be, in: whether it
// can be reached, keeps what it commits, has the right time, gives the rights
// that are needed, and has the version of the schema that this program wants.
// On a server it makes a table for a moment, to know that it may; it leaves
// nothing behind. It ends within some seconds.
func Examine(ctx context.Context, address string, schema *Schema) []Finding {
	x := &examination{}
	db, err := x.begin(address, schema)
	if err == nil && db != nil {
		x.db = db
		err = x.look(ctx)
	}
	if err != nil {
		x.add(LevelFail, "reachable", oneLine(err), "a database that answers and lets dibs in", x.advice(err))
	}
	return x.findings
}

// ExamineLock says what keeps an Owned schema from being on the server at an
// address; nothing when all is well.
func ExamineLock(ctx context.Context, address string, schema *Schema) []Finding {
	x := &examination{}
	db, err := newDB(address, schema, Config{})
	if err == nil && db.server == nil {
		return nil
	}
	if err == nil {
		err = errors.Join(db.screen(ctx), db.ownable())
	}
	if err != nil {
		x.add(LevelFail, schema.Name, reason(err), "a server whose locks are all processes'", "use Redis as the engine, or a database that is no cluster")
	}
	return x.findings
}

// examination is what was found so far. db is nil until the address is known to
// lead to something.
type examination struct {
	db       *DB
	findings []Finding
}

// add adds a finding. Findings at LevelOK need no remedy.
func (x *examination) add(l Level, subject, found, wanted, remedy string) {
	if l == LevelOK {
		wanted, remedy = "", ""
	}
	x.findings = append(x.findings, Finding{Level: l, Subject: subject, Found: found, Wanted: wanted, Remedy: remedy})
}

// begin reads the address; nil when there is nothing to look at yet.
func (x *examination) begin(address string, schema *Schema) (*DB, error) {
	db, err := newDB(address, schema, Config{})
	if err != nil || db.server != nil {
		return db, err
	}
	if _, err := os.Stat(db.place); errors.Is(err, fs.ErrNotExist) {
		x.add(LevelOK, "reachable", "no file "+db.place+" yet: serve makes it", "", "")
		return nil, nil
	}
	f, err := os.OpenFile(db.place, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return db, f.Close()
}

// look examines a database. The error is why it could not be examined.
func (x *examination) look(ctx context.Context) (err error) {
	if x.db.server != nil {
		err := x.db.screen(ctx)
		if errors.Is(err, errUnfit) {
			x.add(LevelFail, "server", reason(err), "connections that are dibs' own", "the address of the server itself")
			return nil
		}
		if err != nil {
			return err
		}
	}
	p, err := x.db.newPool(forWriting, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	s, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.give(s)) }()
	x.add(LevelOK, "reachable", x.db.place, "", "")
	ctx = s.within(ctx)
	for _, step := range []func(context.Context, *sql.Conn) error{x.trust, x.clock, x.rights, x.schema} {
		if err := step(ctx, s.conn); err != nil {
			return err
		}
	}
	return nil
}

// trust asks whether the server keeps what it commits.
func (x *examination) trust(ctx context.Context, conn *sql.Conn) error {
	if x.db.server == nil {
		return nil
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	err := x.db.server.check(ctx, conn)
	switch {
	case errors.Is(err, errUnfit):
		x.add(LevelFail, "server", version+": "+reason(err), "a server that keeps what it commits", "change that setting, and restart the server when it asks for it")
	case err != nil:
		return err
	default:
		x.add(LevelOK, "server", version+", with commits on the disk before they are answered", "", "")
	}
	return nil
}

// The differences between clocks that are worth a warning, and those that lead
// to wrong decisions.
const (
	clockDoubt = time.Second
	clockWrong = 30 * time.Second
)

// clock compares the server's clock with this machine's.
func (x *examination) clock(ctx context.Context, conn *sql.Conn) error {
	if x.db.server == nil {
		return nil
	}
	before := time.Now()
	var seconds float64
	if err := conn.QueryRowContext(ctx, x.db.server.unixTime).Scan(&seconds); err != nil {
		return err
	}
	middle := before.Add(time.Since(before) / 2)
	off := time.UnixMicro(int64(seconds * 1e6)).Sub(middle).Round(time.Millisecond)
	level := LevelOK
	switch {
	case off.Abs() > clockWrong:
		level = LevelFail
	case off.Abs() > clockDoubt:
		level = LevelWarn
	}
	where := "ahead of"
	if off < 0 {
		where = "behind"
	}
	x.add(level, "clock", fmt.Sprintf("%s %s this machine", off.Abs(), where), "less than "+clockDoubt.String()+" apart",
		"let chrony or systemd-timesyncd run on both machines")
	return nil
}

// rights makes a table, writes to it and drops it.
func (x *examination) rights(ctx context.Context, conn *sql.Conn) error {
	name := "dibs_doctor_" + strings.ToLower(rand.Text()[:10])
	if x.db.server == nil {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE; ROLLBACK")
		return err
	}
	if _, err := conn.ExecContext(ctx, "CREATE TABLE "+name+" (n INTEGER PRIMARY KEY)"); err != nil {
		return x.missing(err)
	}
	var errs []error
	for _, statement := range []string{
		"INSERT INTO " + name + " VALUES (1)", "UPDATE " + name + " SET n = 2", "DELETE FROM " + name,
		"CREATE INDEX " + name + "_n ON " + name + " (n)", "DROP TABLE " + name,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return x.missing(errs[0])
	}
	x.add(LevelOK, "rights", "tables can be made, written to and dropped", "", "")
	return nil
}

// missing adds a right that the user lacks, unless the error is about the
// connection.
func (x *examination) missing(err error) error {
	if lost(err) {
		return err
	}
	x.add(LevelFail, "rights", oneLine(err), "a user who may make, write to and drop tables", x.advice(err))
	return nil
}

// schema compares the schema's version with the one that this program wants.
func (x *examination) schema(ctx context.Context, conn *sql.Conn) error {
	files, err := x.db.migrations()
	if err != nil {
		return err
	}
	steps, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	// They are numbered, and a number may be missing.
	want, err := goose.NumericComponent(steps[len(steps)-1])
	if err != nil {
		return err
	}
	var current sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+x.db.versionTable()).Scan(&current); err != nil {
		if lost(err) {
			return err
		}
		x.add(LevelOK, "schema", "none yet: serve or dibs migrate makes it", "", "")
		return nil
	}
	found, wanted := fmt.Sprintf("version %d", current.Int64), fmt.Sprintf("version %d", want)
	switch {
	case current.Int64 > want:
		x.add(LevelFail, "schema", found, wanted, "a newer dibs was here: use that one")
	case current.Int64 < want:
		x.add(LevelWarn, "schema", found, wanted, "dibs migrate brings it up to date, and so does serve at its start")
	default:
		x.add(LevelOK, "schema", found, "", "")
	}
	return nil
}

// advice is what people can do about an error.
func (x *examination) advice(err error) string {
	switch {
	case x.db == nil:
	case x.db.server == nil:
		return "look whether the file is that of a ledger, and may be read and written; bring a broken one back from a backup"
	default:
		if advice := x.db.server.advise(err); advice != "" {
			return advice
		}
	}
	return "see the database's own log"
}

// oneLine is an error in one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// reason is what is wrong with a server, without the words before it.
func reason(err error) string {
	return strings.TrimPrefix(oneLine(err), errUnfit.Error()+": ")
}
