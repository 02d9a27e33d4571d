package sqlledger_test

import (
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// TestFewConnections uses a ledger from one place at a time: however many
// connections it may have, it needs one to read and one to write.
func TestFewConnections(t *testing.T) {
	_, url, _ := servers.Database(t, servers.Postgres)
	l := openAt(t, url)
	defer closeAll(t, l)
	for i := range 10 {
		name := string(rune('a' + i))
		if err := l.InsertProduct(t.Context(), &dibs.Product{ID: name, Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Product(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if n := sqlledger.Connections(l); n != 2 {
		t.Errorf("it has %d connections", n)
	}
}
