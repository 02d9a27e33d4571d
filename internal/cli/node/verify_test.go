package node_test

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/audit"
)

func TestVerifyNothing(t *testing.T) {
	clitest.Run(t, nil, "verify", "--data", t.TempDir()).Want(t, 1, "there is nothing to verify")
	clitest.Run(t, nil, "verify", "--url", "http://127.0.0.1:1").Want(t, 2, "admin_key (not set")
	// The environment names a server; a flag names a folder in its place.
	env := []string{"DIBS_URL=http://127.0.0.1:1"}
	clitest.Run(t, env, "verify").Want(t, 2, "admin_key (not set")
	clitest.Run(t, env, "verify", "--data", t.TempDir()).Want(t, 1, "there is nothing to verify")
}

// wrongSum changes a sum, as an operator may by hand.
const wrongSum = `UPDATE positions SET stock_left = stock_left + 1`

// TestRepair damages the ledger beneath a running server and in a folder that no server
// uses, and repairs both.
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
	p, url := clitest.Serve(t, data)
	clitest.Run(t, clitest.Secrets, "rehearse", "--users", "40", "--requests", "120", "--stock", "20", "--url", url).Want(t, cli.ExitOK, "every promise held")

	damage(wrongSum)
	clitest.Run(t, clitest.Secrets, "verify", "--url", url).Want(t, cli.ExitFailure,
		"comparing all campaigns: the engine and the ledger of the server at "+url, "NO", "a promise is broken in "+url)
	clitest.Run(t, clitest.Secrets, "verify", "--url", url, "--repair").Want(t, cli.ExitOK, "before:", "NO", "repaired, ", "counted afresh: shard 0 stock_left", "after:", "every promise holds")
	clitest.Run(t, clitest.Secrets, "verify", "--url", url, "--repair").Want(t, cli.ExitOK, "there was nothing to repair")

	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	damage(wrongSum)
	clitest.Run(t, nil, "verify", "--data", data).Want(t, cli.ExitFailure,
		"comparing all campaigns: engine memory with its journal sqlite:"+filepath.Join(data, "journal.db")+", ledger sqlite:"+filepath.Join(data, "ledger.db"), "a promise is broken in ")
	r := clitest.Run(t, nil, "verify", "--data", data, "--repair", "--output", "json")
	r.Want(t, cli.ExitOK)
	var report audit.RepairReport
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || report.Before.OK || !report.After.OK || len(report.Steps) != 1 || !report.Steps[0].Done {
		t.Errorf("%+v", report)
	}
	damage(`UPDATE claims SET quantity = 1000000 WHERE seq = 5`)
	clitest.Run(t, nil, "verify", "--data", data, "--repair").Want(t, cli.ExitFailure, "NOT REPAIRED, ", "restock by ", "a promise is broken in ")
}
