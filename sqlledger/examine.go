package sqlledger

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

	"github.com/dibs-dev/dibs"
)

// Examine looks at the database that a ledger is, or will be, in: whether it
// can be reached, is one to be trusted, tells the right time, gives the rights
// that are needed, and has the schema that this program wants. In a server it
// makes a table for a moment, to know that it may; it leaves nothing behind.
// It ends within some seconds, and no text holds a password.
func Examine(ctx context.Context, address string) []dibs.Finding {
	x := &examination{}
	d, place, err := x.dialect(address)
	if err == nil && d != nil {
		x.d = d
		err = x.look(ctx, place)
	}
	if err != nil {
		x.add(dibs.StandingFail, "reachable", tell(err), "a database that answers and lets dibs in", x.advice(err))
	}
	return x.findings
}

// ExamineJournal says what keeps the memory engine's journal from being in the
// server at an address that Examine found well; nothing when all is well.
func ExamineJournal(ctx context.Context, address string) []dibs.Finding {
	x := &examination{}
	d, place, err := serverDialect("journal", address)
	if err == nil {
		x.d = d
		err = d.screen(ctx, place)
	}
	if err == nil {
		err = d.mayOwn()
	}
	if err != nil {
		x.add(dibs.StandingFail, "journal", reason(err), "a server whose locks are all processes'", "use Redis as the engine, or a database that is no cluster")
	}
	return x.findings
}

// examination is what was found so far.
type examination struct {
	d        *dialect
	findings []dibs.Finding
}

func (x *examination) add(s dibs.Standing, subject, found, wanted, remedy string) {
	if s == dibs.StandingOK {
		wanted, remedy = "", ""
	}
	x.findings = append(x.findings, dibs.Finding{Standing: s, Subject: subject, Found: found, Wanted: wanted, Remedy: remedy})
}

// dialect finds the address' dialect; nil when there is nothing to look at.
func (x *examination) dialect(address string) (*dialect, string, error) {
	path, file := strings.CutPrefix(address, schemeSQLite)
	if !file {
		return serverDialect("ledger", address)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		x.add(dibs.StandingOK, "reachable", "no file "+path+" yet: serve makes it", "", "")
		return nil, "", nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, "", err
	}
	return sqliteDialect("sqlite", ledgerTuning), path, f.Close()
}

// look examines a database; the error is for one that does not let it.
func (x *examination) look(ctx context.Context, place string) (err error) {
	if x.d.server != nil {
		err := x.d.screen(ctx, place)
		if errors.Is(err, errUnfit) {
			x.add(dibs.StandingFail, "server", reason(err), "connections that are dibs' own", "the address of the server itself")
			return nil
		}
		if err != nil {
			return err
		}
	}
	p, err := newPool(x.d, place, forWriting, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	s, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.give(s)) }()
	x.add(dibs.StandingOK, "reachable", place, "", "")
	ctx = s.within(ctx)
	for _, step := range []func(context.Context, *session) error{x.trust, x.clock, x.rights, x.schema} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// trust asks whether the server keeps what it commits.
func (x *examination) trust(ctx context.Context, s *session) error {
	if x.d.server == nil {
		return nil
	}
	var version string
	if err := s.conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	err := x.d.server.check(ctx, s.conn)
	switch {
	case errors.Is(err, errUnfit):
		x.add(dibs.StandingFail, "server", version+": "+reason(err), "a server that keeps what it commits", "change that setting, and restart the server when it asks for it")
	case err != nil:
		return err
	default:
		x.add(dibs.StandingOK, "server", version+", with commits on the disk before they are answered", "", "")
	}
	return nil
}

// The clock errors that are worth a word, and those that mislead.
const (
	clockDoubt = time.Second
	clockWrong = 30 * time.Second
)

// clock compares the server's clock with this machine's.
func (x *examination) clock(ctx context.Context, s *session) error {
	if x.d.server == nil {
		return nil
	}
	before := time.Now()
	var seconds float64
	if err := s.conn.QueryRowContext(ctx, x.d.server.unixTime).Scan(&seconds); err != nil {
		return err
	}
	middle := before.Add(time.Since(before) / 2)
	off := time.UnixMicro(int64(seconds * 1e6)).Sub(middle).Round(time.Millisecond)
	standing := dibs.StandingOK
	switch {
	case off.Abs() > clockWrong:
		standing = dibs.StandingFail
	case off.Abs() > clockDoubt:
		standing = dibs.StandingWarn
	}
	where := "ahead of"
	if off < 0 {
		where = "behind"
	}
	x.add(standing, "clock", fmt.Sprintf("%s %s this machine", off.Abs(), where), "less than "+clockDoubt.String()+" apart",
		"let chrony or systemd-timesyncd run on both machines")
	return nil
}

// rights makes a table, writes to it and drops it.
func (x *examination) rights(ctx context.Context, s *session) error {
	name := "dibs_doctor_" + strings.ToLower(rand.Text()[:10])
	if x.d.server == nil {
		_, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE; ROLLBACK")
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "CREATE TABLE "+name+" (n INTEGER PRIMARY KEY)"); err != nil {
		return x.missing(err)
	}
	var errs []error
	for _, statement := range []string{
		"INSERT INTO " + name + " VALUES (1)", "UPDATE " + name + " SET n = 2", "DELETE FROM " + name,
		"CREATE INDEX " + name + "_n ON " + name + " (n)",
	} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := s.conn.ExecContext(ctx, "DROP TABLE "+name); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return x.missing(errs[0])
	}
	x.add(dibs.StandingOK, "rights", "tables can be made, written to and dropped", "", "")
	return nil
}

// missing is a right that is not there, unless the error is another.
func (x *examination) missing(err error) error {
	if lost(err) {
		return err
	}
	x.add(dibs.StandingFail, "rights", tell(err), "a user who may make, write to and drop tables", x.advice(err))
	return nil
}

// schema compares the schema's version with the one that this program wants.
func (x *examination) schema(ctx context.Context, s *session) error {
	table := x.d.applied
	if table == "" {
		table = "goose_db_version"
	}
	files, err := x.d.sources()
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
	if err := s.conn.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+table).Scan(&current); err != nil {
		if lost(err) {
			return err
		}
		x.add(dibs.StandingOK, "schema", "none yet: serve or dibs migrate makes it", "", "")
		return nil
	}
	found, wanted := fmt.Sprintf("version %d", current.Int64), fmt.Sprintf("version %d", want)
	switch {
	case current.Int64 > want:
		x.add(dibs.StandingFail, "schema", found, wanted, "a newer dibs was here: use that one")
	case current.Int64 < want:
		x.add(dibs.StandingWarn, "schema", found, wanted, "dibs migrate brings it up to date, and so does serve at its start")
	default:
		x.add(dibs.StandingOK, "schema", found, "", "")
	}
	return nil
}

// advice is what people can do about an error.
func (x *examination) advice(err error) string {
	if x.d != nil && x.d.server != nil {
		if advice := x.d.server.advise(err); advice != "" {
			return advice
		}
	}
	return "see the database's own log"
}

// tell is an error in one line.
func tell(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// reason is what is wrong with a server, without the words before it.
func reason(err error) string {
	return strings.TrimPrefix(tell(err), errUnfit.Error()+": ")
}
