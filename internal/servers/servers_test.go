package servers_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/servers"
)

// child makes the test binary start the server that it names, tell its port,
// and wait to be killed.
const child = "SERVERS_TEST_CHILD"

var all = map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "postgres": servers.Postgres}

func TestMain(m *testing.M) {
	if name := os.Getenv(child); name != "" {
		s, err := all[name]()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.Port())
		select {}
	}
	code := m.Run()
	err := errors.Join(servers.StopAll(), leaks.Find())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestServers makes a database, kills the server, and finds what was committed
// when it runs again.
func TestServers(t *testing.T) {
	for name, get := range all {
		t.Run(name, func(t *testing.T) {
			s, err := get()
			must(t, err)
			again, err := get()
			must(t, err)
			if again != s {
				t.Error("a second server of the kind was started")
			}
			url, database, done, err := s.Database()
			must(t, err)
			if at, _, _ := strings.Cut(url, "?"); !strings.HasSuffix(at, "/"+database) {
				t.Errorf("the database %s is at %s", database, url)
			}
			must(t, s.Exec(database, "CREATE TABLE kept (n INTEGER)", "INSERT INTO kept VALUES (7)"))
			s.Kill()
			if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port())); err == nil {
				t.Errorf("the killed server answers: %v", c.Close())
			}
			must(t, s.Start())
			db, err := s.Open(database)
			must(t, err)
			var n int
			if err := db.QueryRow("SELECT n FROM kept").Scan(&n); err != nil || n != 7 {
				t.Errorf("found %d, %v", n, err)
			}
			must(t, db.Close())
			must(t, done())
			_, database, done, err = s.Database()
			must(t, err)
			// It is empty, whether or not it is the same one.
			must(t, s.Exec(database, "CREATE TABLE kept (n INTEGER)"))
			must(t, done())
		})
	}
}

// TestServersDieWithTheirProcess kills the process that started a server: the
// server goes with it.
func TestServersDieWithTheirProcess(t *testing.T) {
	for name := range all {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			// The child's files go with this folder.
			dir, err := os.MkdirTemp("", "dibs-servers-test-") //nolint:usetesting // servers without privileges must reach it
			must(t, err)
			defer func() { must(t, os.RemoveAll(dir)) }()
			must(t, os.Chmod(dir, 0o777))
			cmd.Env = append(os.Environ(), child+"="+name, "TMPDIR="+dir)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			port, err := bufio.NewReader(out).ReadString('\n')
			must(t, err)
			port = strings.TrimSpace(port)
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			must(t, err)
			must(t, cmd.Process.Kill())
			if err := cmd.Wait(); err == nil {
				t.Error("the child ended by itself")
			}
			// The end of the server ends its connections.
			must(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
			for {
				if _, err := c.Read(make([]byte, 1024)); err != nil {
					if errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error("the server lives on")
					}
					break
				}
			}
			must(t, c.Close())
		})
	}
}
