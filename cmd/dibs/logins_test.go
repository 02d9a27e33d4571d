package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// secretFile is a file with the value of a setting, and the setting that names it.
type secretFile struct{ path, setting string }

func newSecretFile(t *testing.T, variable, value string) secretFile {
	path := clitest.WriteFile(t, variable, value+"\n")
	return secretFile{path, variable + "_FILE=" + path}
}

func (f secretFile) set(t *testing.T, value string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// loginRig is a Redis and a database with two users each, of whom a server needs one.
type loginRig struct {
	*testing.T
	redis         *servers.Redis
	db            *servers.Server
	ledger, name  string
	before, after string
}

func newLoginRig(t *testing.T) *loginRig {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	db, ledger, name := servers.Database(t, servers.Postgres)
	r := &loginRig{T: t, redis: redis, db: db, ledger: ledger, name: name, before: "before_" + name, after: "after_" + name}
	for _, user := range []string{r.before, r.after} {
		r.do("ACL", "SETUSER", user, "on", ">"+user+"-pw", "~*", "&*", "+@all")
		r.sql(fmt.Sprintf("CREATE USER %s SUPERUSER PASSWORD '%s-pw'", user, user))
		t.Cleanup(func() { r.sql("REASSIGN OWNED BY "+user+" TO CURRENT_USER", "DROP OWNED BY "+user, "DROP USER "+user) })
	}
	return r
}

// at returns the addresses with a user.
func (r *loginRig) at(user string) (engine, base, sink string) {
	login := user + ":" + user + "-pw@"
	engine = strings.Replace(r.redis.URL(), "://", "://"+login, 1)
	return engine, strings.Replace(r.ledger, servers.User+":"+servers.Password+"@", login, 1), engine + "?stream=told"
}

func (r *loginRig) do(args ...string) {
	r.Helper()
	if _, err := r.redis.Do(r.Context(), args...); err != nil {
		r.Fatal(err)
	}
}

func (r *loginRig) sql(statements ...string) {
	r.Helper()
	if err := r.db.Exec(r.name, statements...); err != nil {
		r.Fatal(err)
	}
}

// TestPasswordsChange gives Redis, the database and a sink another user each while a server
// runs, and locks the old ones out: nothing stops.
func TestPasswordsChange(t *testing.T) {
	r := newLoginRig(t)
	engine, base, sink := r.at(r.before)
	engines, ledgers, sinks := newSecretFile(t, "DIBS_ENGINE", engine), newSecretFile(t, "DIBS_LEDGER", base), newSecretFile(t, "DIBS_EVENTS", sink)
	env := append([]string{engines.setting, ledgers.setting, sinks.setting}, clitest.Secrets...)
	p := start(t, env, "serve", "--listen", "127.0.0.1:0")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	clitest.Publish(t, clitest.Admin(t, url), "mugs", 100)
	claim := func(user string) error {
		_, _, err := clitest.User(t, url, user).Claim(t.Context(), "mugs", 1, user)
		return err
	}
	if err := claim("ann"); err != nil {
		t.Fatal(err)
	}

	// Another server is no other password.
	engines.set(t, strings.Replace(engine, "127.0.0.1", "127.0.0.2", 1))
	p.signal(t, syscall.SIGHUP)
	p.await(t, p.err, `cannot be used.*only users and passwords change`)

	engine, base, sink = r.at(r.after)
	engines.set(t, engine)
	ledgers.set(t, base)
	sinks.set(t, sink)
	p.signal(t, syscall.SIGHUP)
	for _, key := range []string{"engine", "ledger", "events"} {
		p.await(t, p.err, `msg=read what="addresses of `+key+`"`)
	}
	// Redis ends the connections of a user that goes.
	r.do("ACL", "DELUSER", r.before)
	r.sql("ALTER USER "+r.before+" NOLOGIN", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+r.before+"'")
	clitest.Until(t, "granted with the passwords of now", func() bool { return claim("bob") == nil })
	clitest.Until(t, "settled, and told to the sink", func() bool {
		m, err := r.redis.Do(t.Context(), "XREVRANGE", "told", "+", "-", "COUNT", "10")
		return err == nil && strings.Contains(m.String(), "bob")
	})
	// A connection of the user that has gone may still be there to be found broken, once.
	clitest.Until(t, "verified", func() bool {
		r := execute(t, clitest.Secrets, "verify", "--url", url)
		return r.Code == 0 && strings.Contains(r.Out, "every promise holds")
	})
	if all := p.out.String() + p.err.String(); strings.Contains(all, "-pw") {
		t.Errorf("a password is shown:\n%s", all)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
