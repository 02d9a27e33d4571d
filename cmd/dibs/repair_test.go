package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"

	"github.com/dibs-dev/dibs/internal/cli"
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
	execute(t, secrets, append(small, "--url", url)...).want(t, cli.ExitOK, "every promise held")

	damage(wrongSum)
	execute(t, secrets, "verify", "--url", url).want(t, cli.ExitFailure, "NO", "a promise is broken in "+url)
	execute(t, secrets, "verify", "--url", url, "--repair").want(t, cli.ExitOK, "before:", "NO", "repaired, ", "counted afresh: shard 0 stock_left", "after:", "every promise holds")
	execute(t, secrets, "verify", "--url", url, "--repair").want(t, cli.ExitOK, "there was nothing to repair")

	p.kill()
	damage(wrongSum)
	execute(t, nil, "verify", "--data", data).want(t, cli.ExitFailure, "a promise is broken in ")
	r := execute(t, nil, "verify", "--data", data, "--repair", "--output", "json")
	r.want(t, cli.ExitOK)
	var report dibs.RepairReport
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || report.Before.OK || !report.After.OK || len(report.Steps) != 1 || !report.Steps[0].Done {
		t.Errorf("%+v", report)
	}
	damage(`UPDATE claims SET quantity = 1000000 WHERE seq = 5`)
	execute(t, nil, "verify", "--data", data, "--repair").want(t, cli.ExitFailure, "NOT REPAIRED, ", "restock by ", "a promise is broken in ")
}

// TestRepairMySQL and TestRepairPostgres are its short form on servers.
func TestRepairMySQL(t *testing.T)    { repairOnServer(t, servers.MariaDB) }
func TestRepairPostgres(t *testing.T) { repairOnServer(t, servers.Postgres) }

func repairOnServer(t *testing.T, get func() (*servers.Server, error)) {
	db, ledger, name := servers.Database(t, get)
	env := append([]string{"DIBS_LEDGER=" + ledger}, secrets...)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	execute(t, env, append(small, "--url", url)...).want(t, cli.ExitOK, "every promise held")
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	execute(t, env, "verify", "--url", url, "--repair").want(t, cli.ExitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
	p.kill()
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	execute(t, env, "verify", "--repair").want(t, cli.ExitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
}
