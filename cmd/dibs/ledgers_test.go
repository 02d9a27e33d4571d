package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMySQL(t *testing.T)    { onServer(t, servers.MariaDB) }
func TestPostgres(t *testing.T) { onServer(t, servers.Postgres) }

// onServer serves with a ledger in a database server, is pressed, killed, and
// verified afterwards.
func onServer(t *testing.T, get func() (*servers.Server, error)) {
	_, ledger, name := servers.Database(t, get)
	env := append([]string{"DIBS_LEDGER=" + ledger}, clitest.Secrets...)
	execute(t, env, "verify").Want(t, cli.ExitFailure, "dibs migrate")
	execute(t, env, "serve", "--listen", "127.0.0.1:0", "--migrate=false").Want(t, cli.ExitFailure, "dibs migrate")
	execute(t, env, "migrate", "--check").Want(t, cli.ExitFailure, "journal in ", "not what this version wants")
	execute(t, env, "migrate").Want(t, cli.ExitOK, "ledger in ", "/"+name)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0", "--migrate=false")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	execute(t, env, append(small, "--url", url)...).Want(t, cli.ExitOK, "every promise held")
	execute(t, env, "key", "list").Want(t, cli.ExitOK, "serve")
	execute(t, env, "migrate").Want(t, cli.ExitFailure, "is in use by process")
	execute(t, env, "dev", "--listen", "127.0.0.1:0").Want(t, cli.ExitFailure, "the database ", "is in use by process", "name another --ledger")
	p.kill()
	execute(t, env, "verify").Want(t, cli.ExitOK, "every promise holds, campaigns verified: 1")

	dev := start(t, env, "dev", "--listen", "127.0.0.1:0")
	dev.await(t, dev.out, `Data +(mysql|postgres)://\S+/`+name+` \(kept\)`)
	dev.await(t, dev.out, `Ctrl-C stops`)
	// Ended politely, it takes its temporary folder with it.
	dev.signal(t, syscall.SIGTERM)
	if code := dev.code(t); code != cli.ExitOK {
		t.Errorf("dev ended with %d", code)
	}
	wrong := strings.Replace(ledger, servers.Password, "wrong-pw", 1)
	for _, r := range []clitest.Result{
		execute(t, clitest.Secrets, "config", "show", "--ledger", ledger), execute(t, clitest.Secrets, "config", "check", "--ledger", ledger),
		execute(t, clitest.Secrets, "verify", "--ledger", wrong),
		{Out: dev.out.String(), Err: dev.err.String()},
		{Out: p.out.String(), Err: p.err.String()},
	} {
		if all := r.Out + r.Err; strings.Contains(all, servers.Password) || strings.Contains(all, "wrong-pw") {
			t.Errorf("the password is shown:\n%s", all)
		}
	}
	execute(t, clitest.Secrets, "verify", "--ledger", wrong).Want(t, cli.ExitFailure, "correct user or password")
}
