package idgen_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/servers"
)

// madeByTwo makes a counter while somebody else is making the table.
func madeByTwo(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx := t.Context()
	db.SetMaxOpenConns(3)
	other, err := db.BeginTx(ctx, nil)
	must(t, err)
	_, err = other.ExecContext(ctx, "CREATE TABLE dibs_counters (name VARCHAR(200) PRIMARY KEY, n BIGINT NOT NULL)")
	must(t, err)
	made := make(chan error, 1)
	go func() {
		_, err := idgen.NewSQLCounter(ctx, db, true)
		made <- err
	}()
	for waiting := 0; waiting == 0 && len(made) == 0; {
		must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE TABLE%'").Scan(&waiting))
	}
	must(t, other.Commit())
	must(t, <-made)
}

// TestSQLCounter counts in both databases.
func TestSQLCounter(t *testing.T) {
	for name, start := range map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "postgres": servers.Postgres} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			server, _, database := servers.Database(t, start)
			db, err := server.Open(database)
			must(t, err)
			defer func() { must(t, db.Close()) }()
			if name == "postgres" {
				madeByTwo(t, db)
			}
			c, err := idgen.NewSQLCounter(ctx, db, name == "postgres")
			must(t, err)
			a, err := idgen.NewSequence(c, "orders", 3)
			must(t, err)
			b, err := idgen.NewSequence(c, "orders", 3)
			must(t, err)
			var got []int64
			for range 4 {
				x, err := a.Next(ctx)
				must(t, err)
				y, err := b.Next(ctx)
				must(t, err)
				got = append(got, x, y)
			}
			if want := []int64{1, 4, 2, 5, 3, 6, 7, 10}; !slices.Equal(got, want) {
				t.Errorf("they count %v, want %v", got, want)
			}
			if n, err := c.Taken(ctx, "orders"); n != 12 || err != nil {
				t.Errorf("taken are %d, %v", n, err)
			}
			if n, err := c.Taken(ctx, "nothing"); n != 0 || err != nil {
				t.Errorf("of nothing %d are taken, %v", n, err)
			}
		})
	}
}
