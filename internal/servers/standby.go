package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PostgresPair is a primary of PostgreSQL and the standby that follows it through
// a network of its own.
//
// It is used by one goroutine. Primary and Standby are the names from the beginning,
// and stay after a promotion.
type PostgresPair struct {
	Primary, Standby *Server
	link             Link
}

// Link is the network of a pair: a badnet.Proxy.
type Link interface {
	// Addr is where it listens, host:port.
	Addr() string
	// Poison makes it bad, as toxiproxy's toxics do.
	Poison(name, kind, stream string, attributes map[string]int64) error
	Stop()
}

// StartPostgresPair starts the two, with a network that between puts before the primary,
// such as badnet.Link. With synchronous, a commit is answered when the standby has it on
// its disk. Stop ends them.
func StartPostgresPair(synchronous bool, between func(upstream string) (Link, error)) (*PostgresPair, error) {
	p := &PostgresPair{}
	err := p.start(synchronous, between)
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *PostgresPair) start(synchronous bool, between func(upstream string) (Link, error)) (err error) {
	small := *thePostgres.kind
	arguments := small.arguments
	small.arguments = func(s *Server) []string {
		return append(arguments(s), "-c", "shared_buffers=64MB", "-c", "wal_keep_size=512MB")
	}
	if p.Primary, err = start(&small); err != nil {
		return err
	}
	if p.link, err = between("127.0.0.1:" + strconv.Itoa(p.Primary.port)); err != nil {
		return err
	}
	follower := small
	follower.prepare = func(s *Server, program string) error {
		_, port, _ := strings.Cut(p.link.Addr(), ":")
		return s.follow(program, port)
	}
	if p.Standby, err = start(&follower); err != nil {
		return err
	}
	if synchronous {
		err = p.Primary.Exec("", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	}
	return errors.Join(err, p.CaughtUp())
}

// follow makes the files of a standby from the server at a port.
func (s *Server) follow(program, port string) error {
	return s.run(filepath.Join(filepath.Dir(program), "pg_basebackup"), "-D", s.data(), "-X", "stream", "-c", "fast", "--no-sync", "-R",
		"-d", fmt.Sprintf("host=127.0.0.1 port=%s user=%s password=%s", port, User, Password))
}

// URL is the address of a database on the pair, for dibs.
func (p *PostgresPair) URL(database string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d,127.0.0.1:%d/%s", User, Password, p.Primary.port, p.Standby.port, database)
}

// CaughtUp returns when the standby has, and shows, what the primary has now.
func (p *PostgresPair) CaughtUp() (err error) {
	db, err := p.Primary.Open("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var now string
	if err := db.QueryRowContext(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&now); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	// A row appears only while the standby is connected: before that the question says
	// false.
	for there := false; !there; <-time.After(20 * time.Millisecond) {
		if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= $1::pg_lsn)", now).Scan(&there); err != nil {
			return fmt.Errorf("servers: the standby does not follow: %w", err)
		}
	}
	return nil
}

// Cut keeps what the primary says from the standby: it falls behind.
func (p *PostgresPair) Cut() error {
	return errors.Join(p.link.Poison("down", "timeout", "downstream", map[string]int64{"timeout": 0}),
		p.link.Poison("up", "timeout", "upstream", map[string]int64{"timeout": 0}))
}

// Promote makes the standby a primary, and returns when it takes writes. The old
// primary must be dead.
func (p *PostgresPair) Promote() error {
	if err := p.Standby.Exec("", "SELECT pg_promote()"); err != nil {
		return err
	}
	// It stands alone, and would wait for a standby of its own.
	return p.Standby.Exec("", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
}

// Demote makes the killed primary a standby of the promoted one. It has to be
// rewound to where they parted.
func (p *PostgresPair) Demote() error {
	program, err := p.Primary.k.program()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(p.Primary.data()); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	if err := p.Primary.follow(program, strconv.Itoa(p.Standby.port)); err != nil {
		return err
	}
	return p.Primary.Start()
}

// Stop ends both and removes their files.
func (p *PostgresPair) Stop() error {
	var errs []error
	for _, s := range []*Server{p.Standby, p.Primary} {
		if s != nil {
			errs = append(errs, s.stop())
		}
	}
	if p.link != nil {
		p.link.Stop()
	}
	return errors.Join(errs...)
}
