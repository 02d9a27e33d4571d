package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MariaDBWith starts a MariaDB server of the caller's own, with the settings
// of a file beneath those that every server here has. stop ends it.
// A file that the server refuses shows as a server that does not answer; the error
// has its log.
func MariaDBWith(settings string) (s *Server, stop func() error, err error) {
	k := *theMariaDB.kind
	arguments := k.arguments
	k.prepare = alsoKeep(k.prepare, settings)
	k.arguments = func(s *Server) []string {
		list := arguments(s)
		// The first argument is --no-defaults; MariaDB takes a file of settings in that
		// place only.
		list[0] = "--defaults-file=" + s.settings()
		return list
	}
	return startOwn(&k)
}

// PostgresWith starts a PostgreSQL server of the caller's own, with the settings
// of a file beneath those that every server here has. stop ends it.
func PostgresWith(settings string) (s *Server, stop func() error, err error) {
	k := *thePostgres.kind
	k.prepare = alsoKeep(k.prepare, settings)
	prepare := k.prepare
	k.prepare = func(s *Server, program string) error {
		if err := prepare(s, program); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("servers: %w", err)
		}
		_, err = fmt.Fprintf(f, "include '%s'\n", s.settings())
		return errors.Join(err, f.Close())
	}
	return startOwn(&k)
}

func startOwn(k *kind) (*Server, func() error, error) {
	s, err := start(k)
	if err != nil {
		return nil, nil, err
	}
	return s, s.stop, nil
}

// settings is the server's copy of a file of settings, which it may read.
func (s *Server) settings() string { return filepath.Join(s.dir, "settings") }

// alsoKeep makes the copy before the server's files are made.
func alsoKeep(prepare func(*Server, string) error, settings string) func(*Server, string) error {
	return func(s *Server, program string) error {
		text, err := os.ReadFile(settings)
		if err != nil {
			return fmt.Errorf("servers: %w", err)
		}
		if err := s.write("settings", string(text)); err != nil {
			return err
		}
		return prepare(s, program)
	}
}
