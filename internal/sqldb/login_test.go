package sqldb

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestLoginChanges locks a user out whose connections are open: with the user and the
// password of now, the database goes on.
func TestLoginChanges(t *testing.T) {
	for kind, get := range databases {
		t.Run(kind, func(t *testing.T) {
			s, address, name := servers.Database(t, get)
			old, next := "old_"+name, "new_"+name
			create := []string{"CREATE USER %s IDENTIFIED BY '%s-pw'", "GRANT ALL ON " + name + ".* TO %s"}
			lockOut := []string{"ALTER USER " + old + " ACCOUNT LOCK", "KILL USER " + old}
			remove := []string{"DROP USER %s"}
			if kind == "postgres" {
				create = []string{"CREATE USER %s SUPERUSER PASSWORD '%s-pw'"}
				lockOut = []string{"ALTER USER " + old + " NOLOGIN", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + old + "'"}
				remove = []string{"REASSIGN OWNED BY %s TO CURRENT_USER", "DROP OWNED BY %s", "DROP USER %s"}
			}
			for _, user := range []string{old, next} {
				for _, statement := range create {
					// A statement names the user alone, or the password too.
					noError(t, s.Exec("", fmt.Sprintf(statement, []any{user, user}[:strings.Count(statement, "%s")]...)))
				}
				t.Cleanup(func() {
					for _, statement := range remove {
						noError(t, s.Exec(name, fmt.Sprintf(statement, user)))
					}
				})
			}
			address = strings.Replace(address, servers.User+":"+servers.Password, old+":"+old+"-pw", 1)
			var login *url.Userinfo
			db := openTest(t, address, Config{Login: func(of string) *url.Userinfo {
				if of != address {
					t.Errorf("it asks for the login of %s", of)
				}
				return login
			}})
			noError(t, insert(t, db, "before", 1))
			noError(t, s.Exec("", lockOut...))
			// The first call may find that its connection is gone.
			goes := func() (err error) {
				for range 3 {
					if err = insert(t, db, "after", 1); err == nil {
						return nil
					}
				}
				return err
			}
			if err := goes(); err == nil || strings.Contains(err.Error(), "-pw") {
				t.Errorf("locked out, a call says %v", err)
			}
			login = url.UserPassword(next, next+"-pw")
			err := goes()
			for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = goes() {
				<-time.After(100 * time.Millisecond)
			}
			noError(t, err)
		})
	}
}
