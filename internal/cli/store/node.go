package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/sqlledger"
	"github.com/dibs-dev/dibs/tracing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// OpenNode starts the node that the settings describe. otherwise says what to
// do when another process has the folder; tracer may be nil.
func OpenNode(ctx context.Context, c *config.Config, log *slog.Logger, tracer *tracing.Tracer, otherwise string) (*embedded.Node, error) {
	cfg := c.Node()
	cfg.Service.Logger = log
	if tracer != nil {
		cfg.Service.Tracer, cfg.Service.TraceClaims = tracer, c.TraceClaims
	}
	node, err := embedded.Open(ctx, cfg)
	if err != nil {
		return nil, ExplainOpen(c, err, otherwise)
	}
	return node, nil
}

// Exists reports whether there is a file; of a server's database, only going
// there tells.
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

// OpenLedger opens the ledger's file by itself, beside a server or without
// one. A file that is not there is made when create says so, else it is
// fs.ErrNotExist.
func OpenLedger(ctx context.Context, c *config.Config, create bool) (*sqlledger.Ledger, error) {
	found, err := Exists(c.LedgerAt())
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	if !found && !create {
		return nil, fmt.Errorf("there is no ledger %s yet: dibs serve makes it: %w",
			strings.TrimPrefix(c.LedgerAt(), config.SQLitePrefix), fs.ErrNotExist)
	}
	// An older file is left alone: a server that knows only its schema may be
	// running.
	l, err := sqlledger.Open(ctx, c.LedgerAt(), sqlledger.Options{Migrate: !found, Timeout: c.LedgerTimeout})
	if err != nil {
		return nil, ExplainOpen(c, err, "")
	}
	return l, nil
}

// HasAdminKey reports whether the ledger, if there is one, has a key that was
// not revoked.
func HasAdminKey(ctx context.Context, c *config.Config) (has bool, err error) {
	found, err := Exists(c.LedgerAt())
	if err != nil || !found {
		return false, err
	}
	// The keys of an older file can be read before it is brought up to date.
	l, err := sqlledger.Open(ctx, c.LedgerAt(), sqlledger.Options{AnySchema: true, Timeout: c.LedgerTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if version, _, err := l.SchemaVersion(ctx); err != nil || version == 0 {
		return false, err
	}
	keys, err := l.Keys(ctx)
	for _, k := range keys {
		has = has || k.Role == dibs.RoleAdmin && k.RevokedAt.IsZero()
	}
	return has, err
}
