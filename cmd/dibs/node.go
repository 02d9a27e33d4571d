package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/sqlledger"
	"github.com/dibs-dev/dibs/tracing"
)

// newLogger writes to the command's error output, as the settings say.
func newLogger(cmd *cobra.Command, c *config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("log_level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(tracing.LogHandler(slog.NewJSONHandler(cmd.ErrOrStderr(), opts))), nil
	}
	return slog.New(tracing.LogHandler(slog.NewTextHandler(cmd.ErrOrStderr(), opts))), nil
}

// openNode starts the node that the settings describe. otherwise says what to
// do when another process has the folder; tracer may be nil.
func openNode(ctx context.Context, c *config, log *slog.Logger, tracer *tracing.Tracer, otherwise string) (*embedded.Node, error) {
	cfg := c.node()
	cfg.Service.Logger = log
	if tracer != nil {
		cfg.Service.Tracer, cfg.Service.TraceClaims = tracer, c.TraceClaims
	}
	node, err := embedded.Open(ctx, cfg)
	if err != nil {
		return nil, explainOpen(c, err, otherwise)
	}
	return node, nil
}

// exists reports whether there is a file; of a server's database, only going
// there tells.
func exists(address string) (bool, error) {
	path, file := strings.CutPrefix(address, sqliteAt)
	if !file {
		return true, nil
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openLedger opens the ledger's file by itself, beside a server or without
// one. A file that is not there is made when create says so, else it is
// fs.ErrNotExist.
func openLedger(ctx context.Context, c *config, create bool) (*sqlledger.Ledger, error) {
	found, err := exists(c.ledger())
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	if !found && !create {
		return nil, fmt.Errorf("there is no ledger %s yet: dibs serve makes it: %w",
			strings.TrimPrefix(c.ledger(), sqliteAt), fs.ErrNotExist)
	}
	// An older file is left alone: a server that knows only its schema may be
	// running.
	l, err := sqlledger.Open(ctx, c.ledger(), sqlledger.Options{Migrate: !found, Timeout: c.LedgerTimeout})
	if err != nil {
		return nil, explainOpen(c, err, "")
	}
	return l, nil
}

// hasAdminKey reports whether the ledger, if there is one, has a key that was
// not revoked.
func hasAdminKey(ctx context.Context, c *config) (has bool, err error) {
	found, err := exists(c.ledger())
	if err != nil || !found {
		return false, err
	}
	// The keys of an older file can be read before it is brought up to date.
	l, err := sqlledger.Open(ctx, c.ledger(), sqlledger.Options{AnySchema: true, Timeout: c.LedgerTimeout})
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
