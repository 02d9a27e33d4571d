// Package embedded wires dibs for one process with nothing installed: the
// in-process engine with its journal, and a SQLite ledger, in one folder. The
// ledger, and the journal with it, may be in MySQL or PostgreSQL instead.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/memengine"
	"github.com/dibs-dev/dibs/sqlledger"
)

// The files in a data folder.
const (
	LedgerFile  = "ledger.db"
	JournalFile = "journal.db"
)

// Config configures a node.
type Config struct {
	// Dir is the data folder; it is created when missing. Required unless
	// Ledger is in a server.
	Dir string
	// Ledger is the ledger's address as sqlledger.Open takes it; empty means
	// LedgerFile in Dir. With a ledger in a server the journal is beside it,
	// and nothing is kept in Dir.
	Ledger string
	// Service tunes the service; its Engine, Ledger and IDs are set by Open.
	Service dibs.Config
	// Now is the engine's and the service's clock; nil means time.Now.
	Now func() time.Time
	// Migrate brings the schema of files of an older version up to date; without
	// it, Open refuses them. New files are made in any case.
	Migrate bool
}

// Node is a running embedded dibs.
type Node struct {
	Service *dibs.Service
	Engine  *memengine.Engine
	Ledger  *sqlledger.Ledger
}

// Open starts a node on a data folder, or on a ledger in a server.
// dibs.ErrOwned when another process runs on it. Close it to settle what was granted; after a crash, the next Open
// does.
func Open(ctx context.Context, cfg Config) (n *Node, err error) {
	journal, ledger, err := cfg.addresses()
	if err != nil {
		return nil, err
	}
	n = &Node{}
	defer func() {
		if err != nil {
			// The first error says more than what closing may add to it.
			_ = n.release(ctx)
			n = nil
		}
	}()
	// The journal is taken first: its lock tells who owns both.
	store, err := sqlledger.OpenJournal(ctx, journal, cfg.optionsFor(journal))
	if err != nil {
		return n, err
	}
	n.Engine, err = memengine.Open(ctx, memengine.Config{Store: store, Owner: owner(), Now: cfg.Now, Logger: cfg.Service.Logger})
	if err != nil {
		return n, errors.Join(err, store.Close())
	}
	if n.Ledger, err = sqlledger.Open(ctx, ledger, cfg.optionsFor(ledger)); err != nil {
		return n, err
	}
	ids, err := idgen.ForClaims(ctx, n.Ledger)
	if err != nil {
		return n, err
	}
	sc := cfg.Service
	sc.Engine, sc.Ledger, sc.IDs = n.Engine, n.Ledger, ids
	if cfg.Now != nil {
		sc.Now = cfg.Now
	}
	if n.Service, err = dibs.New(sc); err != nil {
		return n, err
	}
	return n, n.Service.Start(ctx)
}

// Owned returns the error with which Open would refuse what another process
// has, dibs.ErrOwned, and nil when none has it or nothing is there.
func Owned(ctx context.Context, cfg Config) error {
	journal := cfg.Ledger
	if !sqlledger.InServer(journal) {
		path := filepath.Join(cfg.Dir, JournalFile)
		if _, err := os.Stat(path); err != nil {
			return nil //nolint:nilerr // nobody has what is not there
		}
		journal = sqliteAt + path
	}
	store, err := sqlledger.OpenJournal(ctx, journal, sqlledger.Options{})
	if err != nil {
		return nil //nolint:nilerr // it is not owned but broken, which Open says better
	}
	_, err = store.Acquire(ctx, owner())
	if err = errors.Join(err, store.Close()); errors.Is(err, dibs.ErrOwned) {
		return err
	}
	return nil
}

// addresses are where the journal and the ledger are.
func (cfg *Config) addresses() (journal, ledger string, err error) {
	if sqlledger.InServer(cfg.Ledger) {
		return cfg.Ledger, cfg.Ledger, nil
	}
	if cfg.Dir == "" {
		return "", "", errors.New("embedded: Config.Dir is required")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return "", "", fmt.Errorf("embedded: %w", err)
	}
	journal, ledger = sqliteAt+filepath.Join(cfg.Dir, JournalFile), cfg.Ledger
	if ledger == "" {
		ledger = sqliteAt + filepath.Join(cfg.Dir, LedgerFile)
	}
	return journal, ledger, nil
}

// sqliteAt is how the address of a file begins.
const sqliteAt = "sqlite:"

// optionsFor migrates when that is asked for, and a file when it is new.
func (cfg *Config) optionsFor(address string) sqlledger.Options {
	path, file := strings.CutPrefix(address, sqliteAt)
	_, err := os.Stat(path)
	return sqlledger.Options{Migrate: cfg.Migrate || file && errors.Is(err, fs.ErrNotExist)}
}

// owner names this process to the next one that wants its folder.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// Close settles what was granted until ctx ends, then closes everything.
func (n *Node) Close(ctx context.Context) error {
	err := n.Service.Close(ctx)
	return errors.Join(err, n.release(ctx))
}

// release closes the engine, which commits what was decided, and the ledger.
func (n *Node) release(ctx context.Context) error {
	var errs []error
	if n.Engine != nil {
		// Its last commits are short; they are not cut off by a settling that
		// used its time up.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		errs = append(errs, n.Engine.Close(closing))
	}
	if n.Ledger != nil {
		errs = append(errs, n.Ledger.Close())
	}
	return errors.Join(errs...)
}
