package sqldb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestPooler: a pooler that gives each transaction another connection is
// refused with what to do, before anything was set on a connection of other
// clients. One that pools sessions is taken.
func TestPooler(t *testing.T) {
	s, err := servers.Postgres()
	noError(t, err)
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			url, name := s.DatabaseFor(t)
			b, stop, err := servers.PgBouncer(s, mode)
			noError(t, err)
			defer func() { noError(t, stop()) }()
			for _, schema := range []*Schema{testSchema, ownedSchema} {
				_, err = Open(t.Context(), b.URL(name), schema, Config{})
				if err == nil || !strings.Contains(err.Error(), "a pooler stands before it") || !strings.Contains(err.Error(), "pool_mode = session") {
					t.Errorf("%s behind a pooler: %v", schema.Name, err)
				}
			}
			said := ""
			for _, f := range Examine(t.Context(), b.URL(name), testSchema) {
				if f.Level == LevelFail {
					said += f.Subject + ": " + f.Found + " " + f.Remedy
				}
			}
			if !strings.Contains(said, "server: a pooler stands before it") {
				t.Errorf("the examination says %q", said)
			}
			// The next clients on these connections may write, for example.
			noError(t, b.Exec(name, "CREATE TABLE others (n INTEGER)"))
			openTest(t, url, Config{})
		})
	}
	t.Run("session", func(t *testing.T) {
		_, name := s.DatabaseFor(t)
		b, stop, err := servers.PgBouncer(s, "session")
		noError(t, err)
		t.Cleanup(func() { noError(t, stop()) })
		db := openTest(t, b.URL(name), Config{})
		for i := range 3 {
			noError(t, insert(t, db, fmt.Sprint(i), i))
		}
		if n, err := count(t, db); err != nil || n != 3 {
			t.Errorf("%d rows: %v", n, err)
		}
		for _, f := range Examine(t.Context(), b.URL(name), testSchema) {
			if f.Level != LevelOK {
				t.Errorf("the examination says %+v", f)
			}
		}
		owned, err := Open(t.Context(), b.URL(name), ownedSchema, Config{})
		noError(t, err)
		closeLater(t, owned)
		taken, err := owned.Lock(t.Context(), "lock")
		if err != nil || !taken {
			t.Errorf("the lock: %t, %v", taken, err)
		}
	})
}
