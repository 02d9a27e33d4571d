package servers

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	// The driver waits for the server.
	_ "github.com/jackc/pgx/v5/stdlib"
)

// Postgres returns the PostgreSQL server of this process, and starts it at
// the first call.
func Postgres() (*Server, error) { return thePostgres.get() }

var thePostgres = single{kind: &kind{
	name: "postgres", driver: "pgx", account: "postgres", install: "the package postgresql",
	program: findPostgres,
	prepare: preparePostgres,
	arguments: func(s *Server) []string {
		return []string{
			"-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", s.dir,
			// Every commit waits for the disk, as dibs demands of a ledger: that is the
			// default. Given here, a test could not change it.
			"-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB", "-c", "max_connections=200",
		}
	},
	dsn: func(s *Server, database string) string { return s.URL(database) + "&connect_timeout=5" },
	// The server has no certificate: a client that asked for TLS would be refused it, and
	// connect once more each time, which costs the server a process.
	url: func(s *Server, database string) string {
		return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", User, Password, s.port, database)
	},
	admin: "postgres", create: "CREATE DATABASE %s",
	losing: [3]string{"fsync", "off", "on"},
	wrong:  []string{"ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"},
	right:  []string{"ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()"},
	empty:  []string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC"},
}}

// findPostgres looks where Debian keeps the newest version, then in PATH.
func findPostgres() (string, error) {
	places, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	// Glob sorts, so the last place is the newest version, as long as versions have
	// two digits.
	if err == nil && len(places) > 0 {
		return places[len(places)-1], nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func preparePostgres(s *Server, program string) error {
	if err := s.write("password", Password+"\n"); err != nil {
		return err
	}
	// Passwords by a hash that is out of date, on this machine alone: what hides
	// them better costs a client that is built to find races a tenth of a second each
	// time, and the server a hundredth.
	return s.run(filepath.Join(filepath.Dir(program), "initdb"), "-D", s.data(), "-U", User, "--pwfile="+filepath.Join(s.dir, "password"),
		"-A", "md5", "-E", "UTF8", "--locale=C", "--no-sync")
}
