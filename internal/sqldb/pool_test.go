package sqldb

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestFewConnections uses a database from one place at a time: however many
// connections it may have, it needs one to read and one to write.
func TestFewConnections(t *testing.T) {
	_, url, _ := servers.Database(t, servers.Postgres)
	db := openTest(t, url, Config{Readers: 4, Writers: 4})
	for i := range 10 {
		noError(t, insert(t, db, string(rune('a'+i)), i))
		if _, err := count(t, db); err != nil {
			t.Fatal(err)
		}
	}
	if n := db.Connections(); n != 2 {
		t.Errorf("it has %d connections", n)
	}
}

// TestClosed: a closed database refuses, and closing it again is harmless.
func TestClosed(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{Explain: faulty})
	noError(t, db.Close())
	noError(t, db.Close())
	if err := insert(t, db, "a", 1); faultOf(err) != FaultIO {
		t.Errorf("a write: %v", err)
	}
	if _, err := count(t, db); faultOf(err) != FaultIO {
		t.Errorf("a read: %v", err)
	}
}
