package sqlledger_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// TestPooler: a pooler that gives each transaction another connection is refused
// and says what to do, before anything was set on a connection of others; one that
// pools sessions does.
func TestPooler(t *testing.T) {
	s, err := servers.Postgres()
	noError(t, err)
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			url, name := s.DatabaseFor(t)
			b, stop, err := servers.PgBouncer(s, mode)
			noError(t, err)
			defer func() { noError(t, stop()) }()
			_, err = sqlledger.Open(t.Context(), b.URL(name), sqlledger.Options{Migrate: true})
			wantPooler(t, "the ledger", err)
			_, err = sqlledger.OpenJournal(t.Context(), b.URL(name), sqlledger.Options{Migrate: true})
			wantPooler(t, "the journal", err)
			told := ""
			for _, f := range sqlledger.Examine(t.Context(), b.URL(name)) {
				if f.Standing == dibs.StandingFail {
					told += f.Subject + ": " + f.Found + " " + f.Remedy
				}
			}
			if !strings.Contains(told, "server: a pooler stands before it") {
				t.Errorf("the examination says %q", told)
			}
			// Whoever gets these connections next may write, for example.
			noError(t, b.Exec(name, "CREATE TABLE others (n INTEGER)"))
			closeAll(t, openAt(t, url))
		})
	}
	t.Run("session", func(t *testing.T) {
		_, name := s.DatabaseFor(t)
		b, stop, err := servers.PgBouncer(s, "session")
		noError(t, err)
		defer func() { noError(t, stop()) }()
		l := openAt(t, b.URL(name))
		defer closeAll(t, l)
		r := newSettler(t, l)
		r.grow(300)
		r.settle(t.Context())
		r.check()
		for _, f := range sqlledger.Examine(t.Context(), b.URL(name)) {
			if f.Standing != dibs.StandingOK {
				t.Errorf("the examination says %+v", f)
			}
		}
		j := openJournalAt(t, b.URL(name))
		defer closeAll(t, j)
		generation, err := j.Acquire(t.Context(), "the test")
		noError(t, err)
		noError(t, j.Append(t.Context(), generation, oneRow(1)))
	})
}

func wantPooler(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "a pooler stands before it") || !strings.Contains(err.Error(), "pool_mode = session") {
		t.Errorf("%s behind a pooler: %v", what, err)
	}
}
