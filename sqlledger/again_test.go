package sqlledger

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestConflictsAreBounded: a transaction that always loses is given up after
// some attempts, and nothing else is tried twice.
func TestConflictsAreBounded(t *testing.T) {
	l, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	conflict, other := errors.New("a conflict"), errors.New("another error")
	classify := l.d.classify
	l.d.classify = func(err error) fault {
		if errors.Is(err, conflict) {
			return faultConflict
		}
		return classify(err)
	}
	runs := 0
	write := func(ctx context.Context, fails int, with error) error {
		runs = 0
		return l.write(ctx, "try", func(*session) error {
			if runs++; runs <= fails {
				return with
			}
			return nil
		})
	}
	if err := write(t.Context(), 3, conflict); err != nil || runs != 4 {
		t.Errorf("three conflicts: %d runs, %v", runs, err)
	}
	var said *dibs.Error
	if err := write(t.Context(), 1000, conflict); !errors.As(err, &said) || said.Effect != dibs.EffectNone || runs != attempts {
		t.Errorf("conflicts without end: %d runs, %v", runs, err)
	}
	if err := write(t.Context(), 3, other); !errors.Is(err, other) || runs != 1 {
		t.Errorf("another error: %d runs, %v", runs, err)
	}
	if err := write(t.Context(), 3, &unknownEffect{conflict}); runs != 1 || !errors.As(err, &said) || said.Effect != dibs.EffectUnknown {
		t.Errorf("an unknown effect: %d runs, %v", runs, err)
	}
}

// TestCompare holds the two ways of comparing tuples against each other.
func TestCompare(t *testing.T) {
	l, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	columns := []string{"a", "b", "c"}
	for _, relation := range []string{"<", "<=", ">", ">="} {
		for n := range 27 {
			values := []any{n / 9, n / 3 % 3, n % 3}
			var found [2]string
			for i, d := range []*dialect{{}, {plainTuples: true}} {
				where, args := d.compare(columns, relation, values...)
				err := l.read(t.Context(), "compare", func(s *session) error {
					return s.row(t.Context(), `WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 26),
						rows AS (SELECT n, n / 9 AS a, n / 3 % 3 AS b, n % 3 AS c FROM n)
						SELECT COALESCE(GROUP_CONCAT(n), '') FROM (SELECT n FROM rows WHERE `+where+` ORDER BY n)`, args, &found[i])
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if found[0] != found[1] {
				t.Errorf("%s %v: %s and %s", relation, values, found[0], found[1])
			}
		}
	}
}

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{
		"8.0.15": true, "8.0.16": false, "8.0.36-0ubuntu0.22.04.1": false, "5.7.44-log": true, "9.1.0": false, "8.4": false, "8": true, "nonsense": true,
		"5.5.5-8.0.16-MariaDB": false,
	} {
		if got := olderThan(version, [3]int{8, 0, 16}); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestUnfitServers(t *testing.T) {
	fit := mysqlVariables{version: "10.11.6-MariaDB", flush: 1, binlog: 0, syncBinlog: 0, packet: leastPacket}
	if err := fit.check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(v *mysqlVariables){
		"MariaDB 10.6 is the oldest":         func(v *mysqlVariables) { v.version = "10.5.23-MariaDB" },
		"MySQL 8.0.16 is the oldest":         func(v *mysqlVariables) { v.version = "8.0.15" },
		"innodb_flush_log_at_trx_commit = 1": func(v *mysqlVariables) { v.flush = 2 },
		"sync_binlog = 1":                    func(v *mysqlVariables) { v.binlog = 1 },
		"max_allowed_packet = 16M":           func(v *mysqlVariables) { v.packet-- },
	} {
		v := fit
		change(&v)
		if err := v.check(); !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

// TestRolledBack: a transaction in which a statement failed unnoticed is not
// taken for committed.
func TestRolledBack(t *testing.T) {
	_, url, _ := servers.Database(t, servers.Postgres)
	l, err := Open(t.Context(), url, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	err = l.write(t.Context(), "fail", func(s *session) error {
		if _, err := s.exec(t.Context(), `INSERT INTO secrets (name, value) VALUES ('x', NULL)`); err == nil {
			t.Error("the statement did not fail")
		}
		return nil
	})
	if !errors.Is(err, errRolledBack) {
		t.Errorf("the commit said %v", err)
	}
	if err := l.write(t.Context(), "go on", func(*session) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestLongTransactions: the time for the end of a long call's transaction begins
// with its end, however long its work took.
func TestLongTransactions(t *testing.T) {
	for sleep, get := range map[string]func() (*servers.Server, error){"SELECT SLEEP(2.1)": servers.MariaDB, "SELECT 1 FROM pg_sleep(2.1)": servers.Postgres} {
		_, url, _ := servers.Database(t, get)
		l, err := Open(t.Context(), url, Options{Migrate: true, Timeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = l.write(long(t.Context(), longStatement), "sleep", func(s *session) error {
			var slept int
			return s.row(t.Context(), sleep, nil, &slept)
		})
		if err := errors.Join(err, l.Close()); err != nil {
			t.Errorf("%s: %v", sleep, err)
		}
	}
}
