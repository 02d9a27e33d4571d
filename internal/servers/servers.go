// Package servers starts database servers for tests: real ones, on a free port
// of this machine, with their files in a temporary folder, as a user without
// privileges, and with everything on that makes a commit durable.
//
// A test binary starts each kind once, at its first use; its TestMain calls
// [StopAll] at the end. A server dies with the process that started it,
// however that ends.
package servers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// User and Password are what every server's owner is called.
const (
	User     = "dibs"
	Password = "Vh7-plum_42"
)

// patience bounds the wait for a server to answer.
// A loaded machine may need many seconds for a server that usually takes one.
const patience = time.Minute

// Server is a running server.
//
// mu guards proc and is held by Start, Kill and Freeze, so that they exclude each
// other. idleMu guards idle. All else is set before the first Start returns; the port
// stays the same over restarts.
type Server struct {
	k    *kind
	dir  string
	port int
	// env is added to the environment of the process.
	env []string
	// account runs the server when this process is root's; nil otherwise.
	account *user.User
	// mu guards the process: it may be killed and started again.
	mu   sync.Mutex
	proc *proc
	// idle are the databases that nobody uses.
	idleMu sync.Mutex
	idle   []string
}

// kind is what differs from one server to another.
type kind struct {
	name, driver, account string
	// install names what to install when the program is not there.
	install string
	// program finds the server's program, prepare makes its files, arguments
	// start it.
	program   func() (string, error)
	prepare   func(s *Server, program string) error
	arguments func(s *Server) []string
	// dsn is what the driver takes, url what dibs does.
	dsn, url func(s *Server, database string) string
	// admin is the database that is always there; create makes another, and
	// empty empties one, to be used again: some servers take long to make one.
	admin, create string
	empty         []string
	// losing is a setting by which commits may be lost, its value then, and the one that
	// it has; wrong sets it and right puts it back.
	losing       [3]string
	wrong, right []string
	// ready is a question whose answer is 1 when a server that answers is ready;
	// empty when answering is enough.
	ready string
}

// made are the databases of this process, counted for their names.
// Names are never used twice in a process, also for databases of different servers.
var made atomic.Int64

// start makes a server's files and starts it.
func start(k *kind) (*Server, error) {
	program, err := k.program()
	if err != nil {
		return nil, fmt.Errorf("servers: %s is needed and not there (install %s): %w", k.name, k.install, err)
	}
	s := &Server{k: k}
	if os.Geteuid() == 0 {
		if s.account, err = firstUser(k.account, "nobody"); err != nil {
			return nil, err
		}
	}
	if s.dir, err = os.MkdirTemp("", "dibs-"+k.name+"-"); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	if err = s.own(s.dir); err == nil {
		err = k.prepare(s, program)
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// firstUser returns the first account that exists.
func firstUser(names ...string) (*user.User, error) {
	var errs []error
	for _, name := range names {
		u, err := user.Lookup(name)
		if err == nil {
			return u, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("servers: no account without privileges: %w", errors.Join(errs...))
}

// own gives a file to the server's account.
func (s *Server) own(path string) error {
	if s.account == nil {
		return nil
	}
	uid, gid, err := ids(s.account)
	if err != nil {
		return err
	}
	return os.Chown(path, int(uid), int(gid))
}

func ids(u *user.User) (uid, gid uint32, err error) {
	a, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("servers: %w", err)
	}
	b, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("servers: %w", err)
	}
	return uint32(a), uint32(b), nil
}

// run runs a program that prepares files, to its end.
func (s *Server) run(program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir = s.dir
	if err := s.lower(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("servers: %s: %w\n%s", program, err, out)
	}
	return nil
}

// log is where the server writes.
func (s *Server) log() string { return filepath.Join(s.dir, "server.log") }

// freePort returns a port that nobody listens on.
// Somebody else may take it before the caller does: every start has to cope with
// that.
func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("servers: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// Start starts the server, again when it was killed, and returns when it
// answers. It tries for a while: somebody else may have been faster with the port,
// and what a killed PostgreSQL was at keeps its files until it notices.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	program, err := s.k.program()
	if err != nil {
		return err
	}
	for begun := time.Now(); err == nil || time.Since(begun) < patience; <-time.After(50 * time.Millisecond) {
		if s.port == 0 {
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		if s.proc, err = s.launch(program, s.k.arguments(s)); err != nil {
			return err
		}
		if err = s.await(); err == nil {
			return nil
		}
		s.proc.kill()
	}
	log, logErr := os.ReadFile(s.log())
	return errors.Join(fmt.Errorf("servers: %s does not answer: %w\n%s", s.k.name, err, log), logErr)
}

// await returns when the server answers, or has ended.
func (s *Server) await() error {
	db, err := sql.Open(s.k.driver, s.k.dsn(s, s.k.admin))
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = s.k.asks(ctx, db); err == nil {
			return db.Close()
		}
		select {
		case <-tick.C:
		case <-s.proc.ended:
			return errors.Join(errors.New("it ended"), err, db.Close())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, db.Close())
		}
	}
}

// asks returns nil when the server answers and is ready.
func (k *kind) asks(ctx context.Context, db *sql.DB) error {
	if k.ready == "" {
		return db.PingContext(ctx)
	}
	var is bool
	err := db.QueryRowContext(ctx, k.ready).Scan(&is)
	if err == nil && !is {
		err = errors.New("it is not ready")
	}
	return err
}

// Kill ends the server as kill -9 does. Its files stay.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
}

// stop kills the server and removes its files.
func (s *Server) stop() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}

// Port is where the server listens, on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// URL is the address of a database, for dibs.
func (s *Server) URL(database string) string { return s.k.url(s, database) }

// Database returns the address of an empty database, with its name and what
// gives it back when it is done with.
// done may be called once; after its error the database is not given to anybody
// again.
func (s *Server) Database() (url, name string, done func() error, err error) {
	s.idleMu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		name, s.idle = s.idle[last], s.idle[:last]
	}
	s.idleMu.Unlock()
	if name == "" {
		name = fmt.Sprintf("test%d", made.Add(1))
		if err := s.Exec("", fmt.Sprintf(s.k.create, name)); err != nil {
			return "", "", nil, err
		}
	}
	return s.URL(name), name, func() error { return s.empty(name) }, nil
}

// empty makes a database ready for the next user.
func (s *Server) empty(name string) error {
	statements := make([]string, 0, len(s.k.empty))
	for _, statement := range s.k.empty {
		statements = append(statements, strings.ReplaceAll(statement, "NAME", name))
	}
	if err := s.Exec(name, statements...); err != nil {
		return err
	}
	s.idleMu.Lock()
	defer s.idleMu.Unlock()
	s.idle = append(s.idle, name)
	return nil
}

// Exec runs statements in a database, in the administrators' own when it is
// empty, on one connection.
func (s *Server) Exec(database string, statements ...string) (err error) {
	db, err := s.Open(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range statements {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			return fmt.Errorf("servers: %s: %w", statement, err)
		}
	}
	return nil
}

// Open opens a database behind the back of dibs, on one connection. The
// caller closes it.
func (s *Server) Open(database string) (*sql.DB, error) {
	db, err := sql.Open(s.k.driver, s.k.dsn(s, cmp.Or(database, s.k.admin)))
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}
