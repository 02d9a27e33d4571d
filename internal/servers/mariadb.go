package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	// The driver waits for the server.
	_ "github.com/go-sql-driver/mysql"
)

// MariaDB returns the MariaDB server of this process, and starts it at the
// first call.
func MariaDB() (*Server, error) { return theMariaDB.get() }

var theMariaDB = single{kind: &kind{
	name: "mariadb", driver: "mysql", account: "mysql", install: "the package mariadb-server",
	program: func() (string, error) { return find("mariadbd", "/usr/sbin/mariadbd") },
	prepare: prepareMariaDB,
	arguments: func(s *Server) []string {
		return []string{
			"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.dir, "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port),
			"--socket=" + filepath.Join(s.dir, "socket"), "--pid-file=" + filepath.Join(s.dir, "pid"),
			"--init-file=" + filepath.Join(s.dir, "init.sql"), "--skip-name-resolve",
			// Every commit waits for the disk, as dibs demands of a ledger.
			"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=512M", "--innodb-log-file-size=192M",
		}
	},
	dsn: func(s *Server, database string) string {
		return fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/%s?timeout=5s", User, Password, s.port, database)
	},
	url: func(s *Server, database string) string {
		return fmt.Sprintf("mysql://%s:%s@127.0.0.1:%d/%s", User, Password, s.port, database)
	},
	admin: "mysql", create: "CREATE DATABASE %s", empty: []string{"DROP DATABASE NAME", "CREATE DATABASE NAME"},
	losing: [3]string{"innodb_flush_log_at_trx_commit", "2", "1"},
	wrong:  []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 2"},
	right:  []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 1"},
}}

// find looks for a program in PATH, then at a place of its own.
// The error is that of PATH: it names the program.
func find(name, place string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if _, statErr := os.Stat(place); statErr == nil {
		return place, nil
	}
	return "", err
}

// data is the folder of the server's own files.
func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// prepareMariaDB keeps the temporary tables apart too: a server that starts
// removes those that it finds, and in /tmp they may be another server's, whose
// statement then fails.
func prepareMariaDB(s *Server, _ string) error {
	installer, err := find("mariadb-install-db", "/usr/bin/mariadb-install-db")
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	accounts := fmt.Sprintf("CREATE USER IF NOT EXISTS '%[1]s'@'%%' IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO '%[1]s'@'%%' WITH GRANT OPTION;\n",
		User, Password)
	if err := s.write("init.sql", accounts); err != nil {
		return err
	}
	return s.run(installer, "--no-defaults", "--datadir="+s.data(), "--tmpdir="+s.dir, "--skip-test-db", "--auth-root-authentication-method=normal",
		"--skip-name-resolve")
}
