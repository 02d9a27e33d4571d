package sqlledger_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/sqlledger"
)

// TestPostgresPromoted kills a primary whose standby lacks what was settled last. A
// ledger that knows both servers goes on at the promoted one, by the batches that
// are kept, and goes on again when the old primary comes back as a standby.
func TestPostgresPromoted(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { noError(t, p.Stop()) }()
	noError(t, p.Primary.Exec("", "CREATE DATABASE d"))
	l := openAt(t, p.URL("d"))
	defer closeAll(t, l)
	s := newSettler(t, l)
	s.grow(100)
	s.settle(t.Context())
	noError(t, p.CaughtUp())
	noError(t, p.Cut())
	kept := s.next
	for range 3 {
		s.grow(100)
		s.settle(t.Context())
	}
	last := s.next
	p.Primary.Kill()
	if _, err := l.Totals(t.Context(), s.shard); !errors.Is(err, dibs.ErrUnavailable) || !strings.Contains(err.Error(), "takes writes: promote a standby") {
		t.Errorf("while only the standby answers: %v", err)
	}
	noError(t, p.Promote())
	totals, err := l.Totals(t.Context(), s.shard)
	if err != nil || totals.Position != kept.To {
		t.Fatalf("the promoted server is at %+v, %v, and the standby had %s", totals, err, kept.To)
	}
	// What it lacks is settled again, in one batch of all that the journal kept.
	s.next = dibs.Batch{Campaign: s.c, Shard: s.shard, From: kept.To, To: kept.To}
	s.units -= 300
	s.grow(300)
	if s.next.To != last.To {
		t.Fatalf("the journal ends at %s, not at %s", s.next.To, last.To)
	}
	noError(t, l.Settle(t.Context(), []dibs.Batch{s.next}))
	s.check()
	noError(t, p.Demote())
	s.grow(10)
	noError(t, l.Settle(t.Context(), []dibs.Batch{s.next}))
	s.check()
}

// TestPostgresSynchronous does the same where a commit waits for the standby: what
// was answered is there, and what was not is not known to be.
func TestPostgresSynchronous(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { noError(t, p.Stop()) }()
	noError(t, p.Primary.Exec("", "CREATE DATABASE d"))
	l := openAt(t, p.URL("d"))
	defer closeAll(t, l)
	s := newSettler(t, l)
	for range 3 {
		s.grow(100)
		s.settle(t.Context())
	}
	answered := s.next.To
	noError(t, p.Cut())
	s.grow(100)
	settling := make(chan error, 1)
	go func() { settling <- l.Settle(t.Context(), []dibs.Batch{s.next}) }()
	// It is committed here, and waits for the standby, which hears nothing.
	waiting := eventuallyOne(t, p.Primary, `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	if waiting != 1 {
		t.Fatalf("%d wait for the standby", waiting)
	}
	select {
	case err := <-settling:
		t.Fatalf("a commit that the standby lacks is answered: %v", err)
	default:
	}
	p.Primary.Kill()
	unknownEffect(t, "the commit that waited", <-settling)
	noError(t, p.Promote())
	totals, err := l.Totals(t.Context(), s.shard)
	if err != nil || totals.Position != answered {
		t.Fatalf("the promoted server is at %+v, %v, and %s was answered", totals, err, answered)
	}
	if errs := s.settle(t.Context()); len(errs) > 0 {
		t.Error(errs)
	}
	s.check()
}

// eventuallyOne asks for a number until it is not 0.
func eventuallyOne(t *testing.T, s *servers.Server, question string) (n int) {
	t.Helper()
	db, err := s.Open("")
	noError(t, err)
	defer closeAll(t, db)
	for deadline := time.Now().Add(30 * time.Second); n == 0 && time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		noError(t, db.QueryRowContext(t.Context(), question).Scan(&n))
	}
	return n
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerTakesWritesAgain: a connection on which a server takes no writes, as
// after a failover, is replaced, and the next one is asked anew.
func TestServerTakesWritesAgain(t *testing.T) {
	s, err := servers.Postgres()
	noError(t, err)
	url, name := s.DatabaseFor(t)
	openAt(t, url).Close()
	noError(t, s.Exec("", fmt.Sprintf("ALTER DATABASE %s SET default_transaction_read_only = on", name)))
	l := openAt(t, url)
	defer closeAll(t, l)
	if err := l.InsertProduct(t.Context(), &dibs.Product{ID: "p"}); !errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("while the server is read-only: %v", err)
	}
	// It holds for new connections alone.
	noError(t, s.Exec("", fmt.Sprintf("ALTER DATABASE %s RESET default_transaction_read_only", name)))
	noError(t, l.InsertProduct(t.Context(), &dibs.Product{ID: "p"}))
}

// TestSilentHost: of two servers the first takes connections and says nothing; the
// second is used all the same.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer closeAll(t, silent)
	s, err := servers.Postgres()
	noError(t, err)
	url, _ := s.DatabaseFor(t)
	closeAll(t, openAt(t, url))
	l, err := sqlledger.Open(t.Context(), strings.Replace(url, "@", "@"+silent.Addr().String()+",", 1), sqlledger.Options{AnySchema: true})
	noError(t, err)
	defer closeAll(t, l)
	noError(t, l.Ping(t.Context()))
}

// TestSeveralHosts: which addresses of several servers are taken.
func TestSeveralHosts(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:hush@a:5432,b:5433/d":                                "",
		"postgres://u:hush@a,b/d?target_session_attrs=primary":             "",
		"postgres://u:hush@a/d?target_session_attrs=read-write":            "",
		"postgres://u:hush@a,b/d?target_session_attrs=any":                 "must be read-write or primary",
		"postgres://u:hush@a,b/d?target_session_attrs=prefer-standby":      "must be read-write or primary",
		"mysql://u:hush@a:3306,b:3306/d":                                   "name one address",
		"mariadb://u:hush@a,b/d":                                           "name one address",
		"postgres://u:hush@a:5432,b:5433/d?sslmode=disable&no_such=option": "",
	} {
		err := sqlledger.Check(address)
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if place := sqlledger.Place("postgres://u:hush@a:5432,b:5433/d"); place != "postgres://a:5432,b:5433/d" {
		t.Errorf("shown as %s", place)
	}
}
