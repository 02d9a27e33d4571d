package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PgBouncer starts a pooler before a PostgreSQL server, in one of its modes:
// session, transaction or statement. The caller calls stop.
// In the modes transaction and statement a connection is another one of the server's
// each time, so whatever dibs kept in a session would be lost.
func PgBouncer(before *Server, mode string) (s *Server, stop func() error, err error) {
	k := *thePostgres.kind
	k.name, k.install = "pgbouncer", "the package pgbouncer"
	k.program = func() (string, error) { return find("pgbouncer", "/usr/sbin/pgbouncer") }
	k.prepare = func(s *Server, _ string) error {
		return s.write("users", fmt.Sprintf("%q %q\n", User, Password))
	}
	k.arguments = func(s *Server) []string {
		// It is written when the port is known; what is wrong shows when it is read.
		_ = s.write("pgbouncer.ini", strings.Join([]string{
			"[databases]", fmt.Sprintf("* = host=127.0.0.1 port=%d", before.port),
			"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", s.port), "unix_socket_dir =",
			"server_tls_sslmode = disable", "auth_type = md5", "auth_file = " + filepath.Join(s.dir, "users"), "pool_mode = " + mode,
			// Several ledgers in one test have more connections than the default.
			"default_pool_size = 60", "",
		}, "\n"))
		return []string{filepath.Join(s.dir, "pgbouncer.ini")}
	}
	return startOwn(&k)
}

// write makes a file that the server may read.
func (s *Server) write(name, text string) error {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return s.own(path)
}
