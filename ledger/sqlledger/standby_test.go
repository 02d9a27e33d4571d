package sqlledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/badnet"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/live"
)

// TestPostgresPromoted kills a primary whose standby lacks what was settled
// last. A ledger that knows both servers goes on at the promoted one, by the
// batches that are kept, and goes on again when the old primary comes back as a
// standby.
func TestPostgresPromoted(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(false, badnet.Link)
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
	// The entries that it lacks are settled again, in one batch of all that the journal
	// kept.
	s.next = live.Batch{Campaign: s.c, Shard: s.shard, From: kept.To, To: kept.To}
	s.units -= 300
	s.grow(300)
	if s.next.To != last.To {
		t.Fatalf("the journal ends at %s, not at %s", s.next.To, last.To)
	}
	noError(t, l.Settle(t.Context(), []live.Batch{s.next}))
	s.check()
	noError(t, p.Demote())
	s.grow(10)
	noError(t, l.Settle(t.Context(), []live.Batch{s.next}))
	s.check()
}

// TestPostgresSynchronous does the same where a commit waits for the standby:
// what was answered is there, and what was not is not known to be.
func TestPostgresSynchronous(t *testing.T) {
	t.Parallel()
	p, err := servers.StartPostgresPair(true, badnet.Link)
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
	go func() { settling <- l.Settle(t.Context(), []live.Batch{s.next}) }()
	// It is committed here, and waits for the standby, which is cut off.
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
