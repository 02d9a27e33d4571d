package sqldb

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestServerTakesWritesAgain: a connection on which a server takes no writes, as
// after a failover, is replaced, and the next one is asked anew.
func TestServerTakesWritesAgain(t *testing.T) {
	s, url, name := servers.Database(t, servers.Postgres)
	openTest(t, url, Config{})
	noError(t, s.Exec("", fmt.Sprintf("ALTER DATABASE %s SET default_transaction_read_only = on", name)))
	db, err := Open(t.Context(), url, testSchema, Config{Explain: faulty})
	noError(t, err)
	closeLater(t, db)
	if err := insert(t, db, "a", 1); faultOf(err) != FaultIO {
		t.Errorf("while the server is read-only: %v", err)
	}
	// The setting counts for new connections alone.
	noError(t, s.Exec("", fmt.Sprintf("ALTER DATABASE %s RESET default_transaction_read_only", name)))
	noError(t, insert(t, db, "a", 1))
}

// TestSilentHost: of two servers the first takes connections and says nothing;
// the second is used all the same. The address says nothing of TLS, which neither has.
func TestSilentHost(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	closeLater(t, silent)
	_, url, _ := servers.Database(t, servers.Postgres)
	url, _, _ = strings.Cut(url, "?")
	db, err := Open(t.Context(), strings.Replace(url, "@", "@"+silent.Addr().String()+",", 1), testSchema, Config{})
	noError(t, err)
	closeLater(t, db)
	noError(t, db.Ping(t.Context()))
}
