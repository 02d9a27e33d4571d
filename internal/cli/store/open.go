package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/tracing"
)

// OpenNode opens the node that the settings describe. remedy tells the user what to
// do when another process uses the data folder; tracer may be nil.
func OpenNode(ctx context.Context, c *config.Config, log *slog.Logger, tracer *tracing.Tracer, remedy string) (*node.Node, error) {
	cfg := c.Node()
	cfg.Service.Logger = log
	if tracer != nil {
		cfg.Service.Tracer, cfg.Service.TraceClaims = tracer, c.TraceClaims
	}
	nd, err := node.Open(ctx, cfg)
	if err != nil {
		return nil, Explain(c, err, remedy)
	}
	return nd, nil
}

// Exists reports whether the file of an address exists. It takes a server's database
// for one that does: only connecting to it would tell.
func Exists(address string) (bool, error) {
	path, file := strings.CutPrefix(address, config.SQLitePrefix)
	if !file {
		return true, nil
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// OpenLedger opens the ledger without a node, beside a running server or with none.
// It makes a file that does not exist if create is true, and returns fs.ErrNotExist
// otherwise.
func OpenLedger(ctx context.Context, c *config.Config, create bool) (*sqlledger.Ledger, error) {
	found, err := Exists(c.LedgerAt())
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	if !found && !create {
		return nil, fmt.Errorf("there is no ledger %s yet: dibs serve makes it: %w",
			strings.TrimPrefix(c.LedgerAt(), config.SQLitePrefix), fs.ErrNotExist)
	}
	// A ledger of an older schema stays as it is: a server that knows no newer schema
	// may be running.
	l, err := sqlledger.Open(ctx, c.LedgerAt(), sqlledger.Options{Migrate: !found, Timeout: c.LedgerTimeout, Keys: c.Keys(), EncryptCodes: c.EncryptCodes})
	if err != nil {
		return nil, explain(c, "the ledger "+sqlledger.Place(c.LedgerAt()), err, "")
	}
	return l, nil
}

// HasAdminKey reports whether there is a ledger with a valid API key of an admin.
func HasAdminKey(ctx context.Context, c *config.Config) (has bool, err error) {
	found, err := Exists(c.LedgerAt())
	if err != nil || !found {
		return false, err
	}
	// The keys of an older schema can be read before it is brought up to date.
	l, err := sqlledger.Open(ctx, c.LedgerAt(), sqlledger.Options{AnySchema: true, Timeout: c.LedgerTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	version, _, err := l.SchemaVersion(ctx)
	if err != nil || version == 0 {
		return false, err
	}
	return sqlledger.HasAdminKey(ctx, l, version, time.Now())
}
