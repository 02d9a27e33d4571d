package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/lab/strategies"
)

// ErrNoServer: a server is not there, or cannot be used.
var ErrNoServer = errors.New("lab: a server is missing")

// bench is the servers of one run of the lab. One goroutine uses it. Servers stay from strategy to
// strategy; what a strategy writes does not.
type bench struct {
	cfg *Config
	dir string
	// admin are the addresses at which databases are made, by name.
	admin map[string]string
	// redis are the addresses by level; plain is for strategies that ask for no level.
	redis   map[string]string
	stopped []func() error
	temps   int
}

// plain is a Redis that keeps nothing on the disk.
const plain = ""

// newBench makes sure of every server that the strategies need before the first one runs: a missing
// server must not show after minutes. A strategy on Redis needs a database too, for its orders.
func newBench(ctx context.Context, cfg *Config) (b *bench, err error) {
	b = &bench{cfg: cfg, admin: map[string]string{}, redis: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "dibs-lab-"); err != nil {
		return b, err
	}
	needSQL, needRedis := false, false
	for _, s := range cfg.chosen() {
		needSQL, needRedis = needSQL || s.SQL || s.Redis, needRedis || s.Redis
	}
	for _, name := range cfg.Databases {
		if !needSQL {
			break
		}
		if b.admin[name], err = b.database(ctx, name); err != nil {
			return b, err
		}
	}
	if needRedis {
		err = b.startRedis(ctx)
	}
	return b, err
}

// database returns the address of a database server: of the one that was named, once it answers, or
// of one that it starts, as an administrator who may make databases.
func (b *bench) database(ctx context.Context, name string) (string, error) {
	given, start, admin := b.cfg.MariaDB, servers.MariaDB, "mysql"
	if name == Postgres {
		given, start, admin = b.cfg.Postgres, servers.Postgres, "postgres"
	}
	if given == "" {
		s, err := start()
		if err != nil {
			return "", fmt.Errorf("%w: %s: install it, or name one that runs by --%s, or leave it out with --databases: %w", ErrNoServer, name, name, err)
		}
		b.stopped = append(b.stopped, servers.StopAll)
		return s.URL(admin), nil
	}
	db, err := strategies.OpenSQL(given, 1)
	if err == nil {
		err = errors.Join(db.Ping(ctx), db.Close())
	}
	if err != nil {
		return "", fmt.Errorf("%w: nothing answers as %s at --%s: start it, correct the address, or leave --%s out to have one started: %w",
			ErrNoServer, name, name, name, err)
	}
	return given, nil
}

// startRedis makes sure of a plain Redis. Those of other levels start when a strategy asks for them.
func (b *bench) startRedis(ctx context.Context) error {
	if b.cfg.Redis != "" {
		return b.givenRedis(ctx)
	}
	if err := b.ownRedis(ctx, plain); err != nil {
		return fmt.Errorf("%w: redis: install it, or name an empty database of one that runs by --redis: %w", ErrNoServer, err)
	}
	return nil
}

// givenRedis checks that the Redis that was named is empty: the lab empties it, and must not empty
// somebody's data.
func (b *bench) givenRedis(ctx context.Context) error {
	r, err := strategies.OpenRedis(b.cfg.Redis)
	if err != nil {
		return fmt.Errorf("%w: nothing answers as Redis at --redis: start it, correct the address, or leave --redis out to have one started: %w", ErrNoServer, err)
	}
	defer r.Close()
	empty, err := r.Empty(ctx)
	if err == nil && !empty {
		err = errors.New("the lab empties what it fills: name an empty database, such as redis://127.0.0.1:6379/9")
	}
	if err != nil {
		return fmt.Errorf("%w: --redis cannot be used: %w", ErrNoServer, err)
	}
	b.redis[plain] = b.cfg.Redis
	return nil
}

// ownRedis starts a server for a level, and for replicated a replica of it, and returns when the
// replica has followed.
func (b *bench) ownRedis(ctx context.Context, level string) error {
	args := map[string][]string{
		dibs.LevelRelaxed: {"--appendonly", "yes", "--appendfsync", "everysec"},
		dibs.LevelDurable: servers.RedisAlways, dibs.LevelReplicated: servers.RedisAlways,
	}[level]
	start := func(more ...string) (*servers.Redis, error) {
		b.temps++
		r, err := servers.StartRedis(filepath.Join(b.dir, fmt.Sprintf("redis%d", b.temps)), append(more, args...)...)
		if err == nil {
			b.stopped = append(b.stopped, func() error { r.Kill(); return nil })
		}
		return r, err
	}
	// Without a delay, or the replica would wait seconds for its first copy.
	master, err := start("--repl-diskless-sync-delay", "0")
	if err == nil && level == dibs.LevelReplicated {
		if _, err = start("--replicaof", strings.ReplaceAll(master.Addr(), ":", " ")); err == nil {
			err = follows(ctx, master)
		}
	}
	if err == nil {
		b.redis[level] = master.URL()
	}
	return err
}

// redisFor returns the address of a server that keeps what a level needs. A server that was named is
// used for all levels: where it does not keep enough, dibs refuses to open and the run is skipped.
func (b *bench) redisFor(ctx context.Context, level string) (string, error) {
	if level == dibs.LevelNone || level == dibs.LevelLedgered || b.cfg.Redis != "" {
		level = plain
	}
	// It starts once, and stays for the other strategies of its level.
	if b.redis[level] == "" {
		if err := b.ownRedis(ctx, level); err != nil {
			return "", err
		}
	}
	return b.redis[level], nil
}

// make makes a database with a random name, and returns its address and what removes it. drop opens
// a connection of its own: nobody can remove the database that they are connected to. FORCE ends
// connections that a strategy left open: PostgreSQL would otherwise refuse to drop the database.
func (b *bench) make(ctx context.Context, name string) (address string, drop func(context.Context) error, err error) {
	u, err := url.Parse(b.admin[name])
	if err != nil {
		return "", nil, err
	}
	fresh := "dibs_lab_" + strings.ToLower(rand.Text()[:12])
	run := func(ctx context.Context, statement string) error {
		db, err := strategies.OpenSQL(b.admin[name], 1)
		if err != nil {
			return err
		}
		return errors.Join(db.Exec(ctx, statement), db.Close())
	}
	if err := run(ctx, "CREATE DATABASE "+fresh); err != nil {
		return "", nil, fmt.Errorf("lab: making a database of its own on %s: %w", name, err)
	}
	u.Path = "/" + fresh
	force := ""
	if name == Postgres {
		force = " WITH (FORCE)"
	}
	return u.String(), func(ctx context.Context) error { return run(ctx, "DROP DATABASE "+fresh+force) }, nil
}

// close ends what was started, the latest first, and removes its files. It may follow a newBench
// that failed halfway.
func (b *bench) close() error {
	var errs []error
	for i := len(b.stopped) - 1; i >= 0; i-- {
		errs = append(errs, b.stopped[i]())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// follows waits until the master has its replica.
func follows(ctx context.Context, master *servers.Redis) error {
	r, err := strategies.OpenRedis(master.URL())
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Replicated(ctx); err != nil {
		return fmt.Errorf("lab: the replica does not follow: %w", err)
	}
	return nil
}
