package sqldb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestConflictsAreBounded: a transaction that always loses is given up after
// some attempts, and nothing else is tried twice.
func TestConflictsAreBounded(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{Explain: faulty})
	conflict, other := errors.New("a conflict"), errors.New("another error")
	classify := db.classify
	db.classify = func(err error) Fault {
		if errors.Is(err, conflict) {
			return FaultConflict
		}
		return classify(err)
	}
	runs := 0
	write := func(ctx context.Context, fails int, with error) error {
		runs = 0
		return db.Write(ctx, "try", func(*Session) error {
			if runs++; runs <= fails {
				return with
			}
			return nil
		})
	}
	if err := write(t.Context(), 3, conflict); err != nil || runs != 4 {
		t.Errorf("three conflicts: %d runs, %v", runs, err)
	}
	if err := write(t.Context(), 1000, conflict); faultOf(err) != FaultConflict || runs != attempts {
		t.Errorf("conflicts without end: %d runs, %v", runs, err)
	}
	if err := write(t.Context(), 3, other); !errors.Is(err, other) || faultOf(err) != FaultOther || runs != 1 {
		t.Errorf("another error: %d runs, %v", runs, err)
	}
	if err := write(t.Context(), 3, &unknownEffect{conflict}); runs != 1 || faultOf(err) != FaultUnknownEffect {
		t.Errorf("an unknown effect: %d runs, %v", runs, err)
	}
	runs = 0
	if err := db.WriteOnce(t.Context(), "try once", func(*Session) error { runs++; return conflict }); runs != 1 || faultOf(err) != FaultConflict {
		t.Errorf("a conflict of WriteOnce: %d runs, %v", runs, err)
	}
}

// TestRolledBack: a transaction in which a statement failed unnoticed is not
// taken for committed.
func TestRolledBack(t *testing.T) {
	_, url, _ := servers.Database(t, servers.Postgres)
	db := openTest(t, url, Config{})
	err := db.Write(t.Context(), "fail", func(s *Session) error {
		if _, err := s.Exec(t.Context(), `INSERT INTO things (id, n) VALUES ('x', NULL)`); err == nil {
			t.Error("the statement did not fail")
		}
		return nil
	})
	if !errors.Is(err, errRolledBack) {
		t.Errorf("the commit said %v", err)
	}
	noError(t, insert(t, db, "goes on", 1))
}

// TestLongTransactions: the time for the end of a long call's transaction
// begins with its end, however long its work took.
func TestLongTransactions(t *testing.T) {
	for sleep, get := range map[string]func() (*servers.Server, error){"SELECT SLEEP(2.1)": servers.MariaDB, "SELECT 1 FROM pg_sleep(2.1)": servers.Postgres} {
		_, url, _ := servers.Database(t, get)
		db := openTest(t, url, Config{Timeout: 2 * time.Second})
		err := db.Write(Long(t.Context(), LongStatement), "sleep", func(s *Session) error {
			var slept int
			return s.Row(t.Context(), sleep, nil, &slept)
		})
		if err != nil {
			t.Errorf("%s: %v", sleep, err)
		}
	}
}

// TestFailureUndoes: an error of the function undoes what it did, and leaves
// with its own class.
func TestFailureUndoes(t *testing.T) {
	eachKind(t, func(t *testing.T, url string) {
		db := openTest(t, url, Config{Explain: faulty})
		broken := errors.New("broken")
		err := db.Write(t.Context(), "break", func(s *Session) error {
			_, err := s.Exec(t.Context(), `INSERT INTO things (id, n) VALUES ('a', 1)`)
			return errors.Join(err, broken)
		})
		if !errors.Is(err, broken) {
			t.Errorf("it returned %v", err)
		}
		if n, err := count(t, db); err != nil || n != 0 {
			t.Errorf("%d rows are left: %v", n, err)
		}
		noError(t, insert(t, db, "a", 1))
		if err := insert(t, db, "a", 2); faultOf(err) != FaultUnique {
			t.Errorf("a key twice: %v", err)
		}
		if err := insert(t, db, "b", -1); faultOf(err) != FaultConstraint {
			t.Errorf("a forbidden value: %v", err)
		}
	})
}
