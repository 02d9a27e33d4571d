package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/memengine"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// Memory names the embedded engine.
const Memory = "memory"

// ErrDurability: the engine promises less than was asked for.
var ErrDurability = errors.New("node: the engine promises less than was asked for")

// rank orders the levels; -1 for what is none.
func rank(level string) int { return slices.Index(dibs.Levels(), level) }

// EngineLevel is what the engine itself has to promise for a level: when the
// ledger has every yes before it is said, nothing.
func EngineLevel(level string) string {
	if level == dibs.LevelLedgered {
		return dibs.LevelNone
	}
	return level
}

// openEngine opens the memory engine, or the deployments of Redis, and holds them to their
// level.
func (n *Node) openEngine(ctx context.Context, cfg *Config) (err error) {
	if cfg.Engine != Memory {
		return n.openRedis(ctx, cfg)
	}
	if n.Engine, err = cfg.openMemory(ctx); err != nil {
		// An interface that holds a nil pointer is not nil.
		n.Engine = nil
		return err
	}
	return cfg.hold(n.Engine)
}

// hold returns an error when an engine promises less than was asked for.
func (cfg *Config) hold(e dibs.Engine) error {
	if has, want := e.Durability(), EngineLevel(cfg.Durability); rank(has) < rank(want) {
		return fmt.Errorf("%w: it is %s as it is set up, %s was asked for", ErrDurability, has, want)
	}
	return nil
}

func (cfg *Config) openMemory(ctx context.Context) (dibs.Engine, error) {
	journal := cfg.journal()
	store, err := sqlledger.OpenJournal(ctx, journal, cfg.optionsFor(journal))
	if err != nil {
		return nil, err
	}
	e, err := memengine.Open(ctx, memengine.Config{Store: store, Owner: owner(), Now: cfg.Now, Logger: cfg.Service.Logger})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return e, nil
}

// journal is where the memory engine's journal is.
func (cfg *Config) journal() string {
	if sqlledger.InServer(cfg.Ledger) {
		return cfg.Ledger
	}
	return sqliteAt + filepath.Join(cfg.Dir, JournalFile)
}

// Owned returns the error with which Open would refuse what another process
// has, dibs.ErrOwned, and nil when none has it or nothing is there. Redis
// belongs to nobody.
func Owned(ctx context.Context, cfg Config) error {
	if cfg.Engine != "" && cfg.Engine != Memory {
		return nil
	}
	journal := cfg.journal()
	if path, ok := strings.CutPrefix(journal, sqliteAt); ok {
		if _, err := os.Stat(path); err != nil {
			return nil //nolint:nilerr // nobody has what is not there
		}
	}
	store, err := sqlledger.OpenJournal(ctx, journal, sqlledger.Options{Timeout: cfg.LedgerTimeout})
	if err != nil {
		return nil //nolint:nilerr // it is not owned but broken, which Open says better
	}
	_, err = store.Acquire(ctx, owner())
	if err = errors.Join(err, store.Close()); errors.Is(err, dibs.ErrOwned) {
		return err
	}
	return nil
}

// optionsFor migrates when that is asked for, and a file when it is new.
func (cfg *Config) optionsFor(address string) sqlledger.Options {
	path, file := strings.CutPrefix(address, sqliteAt)
	_, err := os.Stat(path)
	return sqlledger.Options{Migrate: cfg.Migrate || file && errors.Is(err, fs.ErrNotExist), Timeout: cfg.LedgerTimeout, Login: cfg.Login}
}

// owner names this process to the next one that wants its folder.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}
