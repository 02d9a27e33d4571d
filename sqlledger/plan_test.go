package sqlledger_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/sqlledger"
)

// Giving an item to a claim must look for that item alone: a plan that reads
// the campaign's items makes settling a large campaign stand still.
func TestItemsAreFoundByTheirNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlledger.OpenSQLite(t.Context(), path, sqlledger.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id, parent, unused int
	var detail string
	if err := db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN `+sqlledger.AssignItem, 1, 1, 1, 0, 5).Scan(&id, &parent, &unused, &detail); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(detail, "n=?") {
		t.Fatalf("the plan is %q", detail)
	}
}
