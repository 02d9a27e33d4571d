package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMySQL(t *testing.T)    { onServer(t, servers.MariaDB) }
func TestPostgres(t *testing.T) { onServer(t, servers.Postgres) }

// onServer serves with a ledger in a database server, is pressed, killed, and
// verified afterwards.
func onServer(t *testing.T, get func() (*servers.Server, error)) {
	_, ledger, name := servers.Database(t, get)
	env := append([]string{"DIBS_LEDGER=" + ledger}, secrets...)
	cli(t, env, "verify").want(t, exitFailure, "dibs migrate")
	cli(t, env, "serve", "--migrate=false").want(t, exitFailure, "dibs migrate")
	cli(t, env, "migrate", "--check").want(t, exitFailure, "journal in ", "not what this version wants")
	cli(t, env, "migrate").want(t, exitOK, "ledger in ", "/"+name)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0", "--migrate=false")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	cli(t, env, append(small, "--url", url)...).want(t, exitOK, "every promise held")
	cli(t, env, "key", "list").want(t, exitOK, "serve")
	cli(t, env, "migrate").want(t, exitFailure, "is in use by process")
	cli(t, env, "dev", "--listen", "127.0.0.1:0").want(t, exitFailure, "the database ", "is in use by process", "name another --ledger")
	p.kill()
	cli(t, env, "verify").want(t, exitOK, "every promise holds, campaigns verified: 1")

	dev := start(t, env, "dev", "--listen", "127.0.0.1:0")
	dev.await(t, dev.out, `Data +(mysql|postgres)://\S+/`+name+` \(kept\)`)
	dev.await(t, dev.out, `Ctrl-C stops`)
	// Ended politely, it takes its temporary folder with it.
	dev.signal(t, syscall.SIGTERM)
	if code := dev.code(t); code != exitOK {
		t.Errorf("dev ended with %d", code)
	}
	wrong := strings.Replace(ledger, servers.Password, "wrong-pw", 1)
	for _, r := range []result{
		cli(t, secrets, "config", "show", "--ledger", ledger), cli(t, secrets, "config", "check", "--ledger", ledger),
		cli(t, secrets, "verify", "--ledger", wrong),
		{out: dev.out.String(), err: dev.err.String()},
		{out: p.out.String(), err: p.err.String()},
	} {
		if all := r.out + r.err; strings.Contains(all, servers.Password) || strings.Contains(all, "wrong-pw") {
			t.Errorf("the password is shown:\n%s", all)
		}
	}
	cli(t, secrets, "verify", "--ledger", wrong).want(t, exitFailure, "correct user or password")
}
