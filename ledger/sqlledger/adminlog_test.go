package sqlledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// eachDatabase calls f with the address of a ledger of its own on every database, and with what
// runs statements beside the ledger.
func eachDatabase(t *testing.T, f func(t *testing.T, url string, raw func(statements ...string))) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(freshLedger(t), "ledger.db")
		f(t, "sqlite:"+path, func(statements ...string) { raw(t, path, statements...) })
	})
	eachServer(t, func(t *testing.T, s *servers.Server) {
		url, name := s.DatabaseFor(t)
		closeAll(t, openAt(t, url))
		f(t, url, func(statements ...string) {
			if err := s.Exec(name, statements...); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// logged is an entry of the admin log.
func logged(id string, at time.Time) *access.AdminAction {
	return &access.AdminAction{ID: id, At: at, Key: "k", KeyName: "boss", Role: access.RoleAdmin, Action: "deposit", Target: "/v1/accounts/42/deposits", Before: []byte(`{"balance":1}`)}
}

// verified checks the admin log of a ledger.
func verified(t *testing.T, l *sqlledger.Ledger) access.ChainReport {
	t.Helper()
	a := access.New(access.Config{Ledger: l, Now: time.Now, LedgerTimeout: time.Minute})
	r, err := a.VerifyLog(t.Context(), access.ChainPoint{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// migrationsDown are the statements that undo a migration and all later ones, the last one first,
// as their files say, and forget that they were applied.
func migrationsDown(t *testing.T, url string, first int) (statements []string) {
	t.Helper()
	kind, _, _ := strings.Cut(url, ":")
	files, err := filepath.Glob(filepath.Join("migrations", kind, "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations: %v", len(files), err)
	}
	slices.Sort(files)
	slices.Reverse(files)
	for _, file := range files {
		n, err := strconv.Atoi(filepath.Base(file)[:5])
		text, readErr := os.ReadFile(file)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if n < first {
			break
		}
		_, down, _ := strings.Cut(string(text), "-- +goose Down\n")
		for statement := range strings.SplitSeq(down, ";\n") {
			if statement = strings.TrimSpace(statement); statement != "" {
				statements = append(statements, statement)
			}
		}
	}
	table := "dibs_ledger_versions"
	if kind == "sqlite" {
		table = "goose_db_version"
	}
	return append(statements, fmt.Sprintf("DELETE FROM %s WHERE version_id >= %d", table, first))
}

// TestChainAfterUpgrade: entries from before the chain stay as they are, and the chain begins
// with the first one after the upgrade. An old entry that ends after it joins the chain.
func TestChainAfterUpgrade(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		raw(migrationsDown(t, url, 18)...)
		for _, id := range []string{"a-1", "a-2"} {
			raw(`INSERT INTO audit (id, at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json)
				VALUES ('` + id + `', 1000, 'k', 'boss', 'admin', '', '', 'deposit', '/v1/accounts/42/deposits', 0, '', '{"balance":1}', '')`)
		}
		l := openAt(t, url)
		defer closeAll(t, l)
		if r := verified(t, l); !r.Whole || r.Last != 0 || r.Unchained != 2 {
			t.Errorf("after the upgrade: %+v", r)
		}
		old := logged("a-2", time.UnixMilli(1000))
		old.Status = 200
		if err := l.SaveAdminActions(t.Context(), []*access.AdminAction{logged("a-3", time.UnixMilli(2000)), old}); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, l); !r.Whole || r.Last != 3 || r.Entries != 2 || r.Unchained != 1 {
			t.Errorf("with entries after the upgrade: %+v", r)
		}
		raw(`UPDATE audit SET chain_n = 0 WHERE id = 'a-2'`, `UPDATE audit SET id = 'a-0' WHERE id = 'a-3'`)
		if r := verified(t, l); r.Whole {
			t.Errorf("an entry taken out of the chain: %+v", r)
		}
	})
}

// TestChainFindsChanges: whatever is changed in the tables by hand, the check says where.
func TestChainFindsChanges(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string, raw func(...string)) {
		l := openAt(t, url)
		defer closeAll(t, l)
		for i, id := range []string{"a-1", "a-2", "a-3"} {
			if err := l.SaveAdminActions(t.Context(), []*access.AdminAction{logged(id, time.UnixMilli(int64(1000*i)))}); err != nil {
				t.Fatal(err)
			}
		}
		columns := `id, at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json`
		for _, c := range []struct {
			name, do, undo string
			fault          access.ChainFault
			at             int64
		}{
			{"a text", `UPDATE audit SET before_json = '{}' WHERE id = 'a-2'`, `UPDATE audit SET before_json = '{"balance":1}' WHERE id = 'a-2'`, access.FaultEntry, 3},
			{"a key", `UPDATE audit SET actor = 'other' WHERE id = 'a-1'`, `UPDATE audit SET actor = 'k' WHERE id = 'a-1'`, access.FaultEntry, 2},
			{"an id", `UPDATE audit SET id = 'a-4' WHERE id = 'a-3'`, `UPDATE audit SET id = 'a-3' WHERE id = 'a-4'`, access.FaultMissing, 4},
			{"an entry more", `INSERT INTO audit (` + columns + `) SELECT 'a-9', at, actor, actor_name, role, address, request_id, action, target, status, reason, before_json, after_json
				FROM audit WHERE id = 'a-1'`, `DELETE FROM audit WHERE id = 'a-9'`, access.FaultStray, 1},
			{"an entry out of nowhere", `UPDATE audit SET chain_n = 9 WHERE id = 'a-3'`, `UPDATE audit SET chain_n = 4 WHERE id = 'a-3'`, access.FaultStray, 4},
			{"the end of the chain", `UPDATE audit_chain SET n = 5 WHERE n = 4`, `UPDATE audit_chain SET n = 4 WHERE n = 5`, access.FaultGap, 4},
			{"a record", `UPDATE audit_chain SET record = 'x' WHERE n = 3`, "", access.FaultHash, 3},
		} {
			if r := verified(t, l); !r.Whole {
				t.Fatalf("before %s: %+v", c.name, r)
			}
			raw(c.do)
			if r := verified(t, l); r.Whole || r.Fault != c.fault || r.BrokenAt != c.at {
				t.Errorf("%s: %+v, want %s at %d", c.name, r, c.fault, c.at)
			}
			if c.undo != "" {
				raw(c.undo)
			}
		}
	})
}
