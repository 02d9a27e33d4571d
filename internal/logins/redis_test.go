package logins_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := servers.StopAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// A client goes on with the user of now when the one of before is gone, also where
// sentinels say which server is the master: they have users of their own.
func TestRedis(t *testing.T) {
	one, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Kill)
	set, err := servers.StartSentinel(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Stop)
	for what, c := range map[string]struct {
		url     string
		members []*servers.Redis
	}{"a server": {one.URL(), []*servers.Redis{one}}, "behind Sentinel": {set.URL(), set.Members}} {
		t.Run(what, func(t *testing.T) {
			do := func(args ...string) {
				t.Helper()
				for _, r := range c.members {
					if _, err := r.Do(t.Context(), args...); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, user := range []string{"ann", "bob"} {
				do("ACL", "SETUSER", user, "on", ">"+user+"-pw", "~*", "&*", "+@all")
			}
			opt, err := rueidis.ParseURL(strings.Replace(c.url, "://", "://ann:ann-pw@", 1))
			if err != nil {
				t.Fatal(err)
			}
			var book logins.Book
			address := "redis://ann:ann-pw@here"
			logins.Redis(&opt, func() *url.Userinfo { return book.Of(address) })
			client, err := rueidis.NewClient(opt)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			asked := func() (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				return client.Do(ctx, client.B().AclWhoami().Build()).ToString()
			}
			if is, err := asked(); err != nil || is != "ann" {
				t.Fatalf("%s, %v", is, err)
			}
			if err := book.Change([]string{address}, []string{"redis://bob:bob-pw@here"}); err != nil {
				t.Fatal(err)
			}
			do("ACL", "DELUSER", "ann")
			is := ""
			for deadline := time.Now().Add(time.Minute); is != "bob" && time.Now().Before(deadline); {
				if is, err = asked(); err != nil {
					<-time.After(50 * time.Millisecond)
				}
			}
			if is != "bob" {
				t.Errorf("it goes on as %q, %v", is, err)
			}
		})
	}
}
