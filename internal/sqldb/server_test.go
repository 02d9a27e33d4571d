package sqldb

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// writeAndHang begins a transaction that writes, runs a statement that returns
// one number in it, and leaves it as it is, as a frozen process does, until end
// is called.
func writeAndHang(t *testing.T, db *DB, statement string) (n int64, end func()) {
	t.Helper()
	s, err := db.writers.take(t.Context())
	noError(t, err)
	noError(t, s.control(t.Context(), db.begin))
	n, err = number(t.Context(), s.conn, statement)
	noError(t, err)
	return n, func() {
		s.broken = true
		if err := db.writers.give(s); err != nil {
			t.Error(err)
		}
	}
}

// TestServerStalledTransaction: a process that is frozen in the middle of a
// transaction loses it soon, where the server has a limit for that, before
// those who wait for its rows give up.
func TestServerStalledTransaction(t *testing.T) {
	eachServer(t, func(t *testing.T, _ *servers.Server, url string) {
		frozen := openTest(t, url, Config{})
		limit := "SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
		if frozen.Kind == MySQL {
			limit = "SELECT @@SESSION.idle_transaction_timeout * 1000"
		}
		ms, end := writeAndHang(t, frozen, limit)
		end()
		if ms != stallPatience.Milliseconds() {
			t.Errorf("a transaction may do nothing for %d ms", ms)
		}
		if os.Getenv("SOAK") != "" {
			stalled(t, url, frozen)
		}
	})
}

// stalled has one process lock a row and do nothing more: another one changes
// the row all the same.
func stalled(t *testing.T, url string, frozen *DB) {
	other := openTest(t, url, Config{Timeout: MaxTimeout})
	noError(t, insert(t, other, "locked", 1))
	_, end := writeAndHang(t, frozen, "SELECT n FROM things WHERE id = 'locked' FOR UPDATE")
	begun := time.Now()
	if err := other.Write(t.Context(), "update", func(s *Session) error {
		_, err := s.Exec(t.Context(), "UPDATE things SET n = 2 WHERE id = 'locked'")
		return err
	}); err != nil {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	if took := time.Since(begun); took < stallPatience/2 || took > 2*stallPatience {
		t.Errorf("the row was free after %s", took)
	}
	end()
}

// TestServerRefused: whatever keeps a database from being opened is told
// within five seconds, with what to do, and without the password.
func TestServerRefused(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	closeLater(t, silent)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	noError(t, gone.Close())
	for kind, get := range databases {
		t.Run(kind, func(t *testing.T) {
			s, url, name := servers.Database(t, get)
			here := fmt.Sprintf("127.0.0.1:%d", s.Port())
			mysql := kind == "mysql"
			encrypted := url + "?tls=true"
			if !mysql {
				encrypted = strings.Replace(url, "sslmode=disable", "sslmode=verify-full", 1)
			}
			poor := strings.Replace(url, servers.User+":"+servers.Password, "poor_"+name+":poor-pw", 1)
			grant, noSchema, unfit := []string{fmt.Sprintf("CREATE USER poor_%s PASSWORD 'poor-pw'", name)}, poor+"&search_path=nowhere",
				strings.Replace(url, "/"+name, "/latin_"+name, 1)
			makeUnfit := fmt.Sprintf("CREATE DATABASE latin_%s ENCODING 'LATIN1' TEMPLATE template0", name)
			if mysql {
				grant = []string{
					fmt.Sprintf("CREATE USER poor_%s IDENTIFIED BY 'poor-pw'", name), fmt.Sprintf("GRANT SELECT ON %s.* TO poor_%s", name, name),
				}
				noSchema, unfit, makeUnfit = poor, url, "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
			}
			// The server is shared: no other test may meet this user.
			t.Cleanup(func() { noError(t, s.Exec("", "DROP USER poor_"+name)) })
			noError(t, s.Exec("", grant...))
			var all sync.WaitGroup
			for what, c := range map[string]struct{ url, want string }{
				"a wrong password": {strings.Replace(url, servers.Password, "wrong-pw", 1), "correct user or password"},
				"a wrong user":     {strings.Replace(url, servers.User+":", "nobody:", 1), "correct user or password"},
				"no database":      {strings.Replace(url, "/"+name, "/nowhere", 1), "there is no database nowhere: CREATE DATABASE nowhere"},
				"no rights":        {poor, "has too few rights"},
				"no schema":        {noSchema, "has too few rights"},
				"no server":        {strings.Replace(url, here, gone.Addr().String(), 1), "start the server, or correct host and port"},
				"no such host":     {strings.Replace(url, "127.0.0.1", "no-such-host.invalid", 1), "start the server, or correct host and port"},
				"another server":   {otherServer(t, url, mysql), "start the server, or correct host and port"},
				"no TLS":           {encrypted, "the server does not encrypt"},
				"a silent server":  {strings.Replace(url, here, silent.Addr().String(), 1), "start the server, or correct host and port"},
			} {
				all.Go(func() { refused(t, what, c.url, c.want) })
			}
			all.Wait()
			noError(t, s.Exec("", makeUnfit))
			refused(t, "a server that is unfit", unfit, "cannot keep a ledger as it is")
			if mysql {
				noError(t, s.Exec("", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"))
			}
		})
	}
}

// otherServer is the address with the port of a server of the other kind.
func otherServer(t *testing.T, address string, mysql bool) string {
	t.Helper()
	get := servers.MariaDB
	if mysql {
		get = servers.Postgres
	}
	s, err := get()
	noError(t, err)
	u, err := url.Parse(address)
	noError(t, err)
	u.Host = fmt.Sprintf("127.0.0.1:%d", s.Port())
	return u.String()
}

// refused opens and migrates what cannot be, for both schemas.
func refused(t *testing.T, what, url, want string) {
	began := time.Now()
	var both sync.WaitGroup
	for _, schema := range []*Schema{testSchema, ownedSchema} {
		both.Go(func() {
			db, err := Open(t.Context(), url, schema, Config{})
			if err == nil {
				_, err = db.Migrate(t.Context())
				err = errors.Join(err, db.Close())
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v", what, schema.Name, err)
			}
			for _, secret := range []string{servers.Password, "wrong-pw", "poor-pw"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %s: the error shows the password: %v", what, schema.Name, err)
				}
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%s, %s: told after %s", what, schema.Name, took)
			}
		})
	}
	both.Wait()
}
