package main

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// small is a rehearsal that is over in a moment.
var small = []string{"rehearse", "--users", "40", "--requests", "120", "--stock", "20"}

// wrongSum changes a sum, as an operator may by hand.
const wrongSum = `UPDATE positions SET stock_left = stock_left + 1`

// TestRepairMySQL and TestRepairPostgres damage a ledger in a server beneath a running
// node, and after the node was killed, and repair both.
func TestRepairMySQL(t *testing.T)    { repairOnServer(t, servers.MariaDB) }
func TestRepairPostgres(t *testing.T) { repairOnServer(t, servers.Postgres) }

func repairOnServer(t *testing.T, get func() (*servers.Server, error)) {
	db, ledger, name := servers.Database(t, get)
	env := append([]string{"DIBS_LEDGER=" + ledger}, clitest.Secrets...)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	execute(t, env, append(small, "--url", url)...).Want(t, cli.ExitOK, "every promise held")
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	execute(t, env, "verify", "--url", url, "--repair").Want(t, cli.ExitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
	p.kill()
	if err := db.Exec(name, wrongSum); err != nil {
		t.Fatal(err)
	}
	execute(t, env, "verify", "--repair").Want(t, cli.ExitOK, "repaired, ", "counted afresh: shard 0 stock_left", "every promise holds")
}
