package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
)

// wrongSum is a sum that somebody changed by hand.
const wrongSum = `UPDATE positions SET stock_left = stock_left + 1`

// TestRepair damages the ledger beneath a running server and in a folder that
// nobody uses, and repairs both.
func TestRepair(t *testing.T) {
	data := t.TempDir()
	damage := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "ledger.db")+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	p, url := startServe(t, data)
	cli(t, secrets, append(small, "--url", url)...).want(t, exitOK, "every promise held")

	damage(wrongSum)
	cli(t, secrets, "verify", "--url", url).want(t, exitFailure, "NO", "a promise is broken in "+url)
	cli(t, secrets, "verify", "--url", url, "--repair").want(t, exitOK, "before:", "NO", "repaired, ", "counted afresh: shard 0 stock_left", "after:", "every promise holds")
	cli(t, secrets, "verify", "--url", url, "--repair").want(t, exitOK, "there was nothing to repair")

	p.kill()
	damage(wrongSum)
	cli(t, nil, "verify", "--data", data).want(t, exitFailure, "a promise is broken in ")
	r := cli(t, nil, "verify", "--data", data, "--repair", "--output", "json")
	r.want(t, exitOK)
	var report dibs.RepairReport
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || report.Before.OK || !report.After.OK || len(report.Steps) != 1 || !report.Steps[0].Done {
		t.Errorf("%+v", report)
	}
	damage(`UPDATE claims SET quantity = 1000000 WHERE seq = 5`)
	cli(t, nil, "verify", "--data", data, "--repair").want(t, exitFailure, "NOT REPAIRED, ", "restock by ", "a promise is broken in ")
}

// TestRepairMySQL and TestRepairPostgres are its short form on servers.
func TestRepairMySQL(t *testing.T)    { repairOnServer(t, servers.MariaDB) }
func TestRepairPostgres(t *testing.T) { repairOnServer(t, servers.Postgres) }

func repairOnServer(t *testing.T, get func() (*servers.Server, error)) {
	db, ledger, name := servers.Database(t, get)
	env := append([]string{"DIBS_LEDGER=" + ledger}, secrets...)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	cli(t, env, append(small, "--url", url)...).want(t, exitOK, "every promise held")
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	cli(t, env, "verify", "--url", url, "--repair").want(t, exitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
	p.kill()
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	cli(t, env, "verify", "--repair").want(t, exitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
}
