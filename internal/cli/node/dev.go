package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newDevCommand(b cli.Build) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on this machine with demo campaigns and ready-made curl lines",
		Long: `Serve on this machine with demo campaigns, an admin key and ready-made curl
lines. The token dev_42 stands for user 42, here and only here. Without --data
everything is in a temporary folder, which is removed at the end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd, config.ServerRules, devRules)
			if err != nil {
				return err
			}
			return dev(cmd, c, b.Version)
		},
	}
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
}

// devRules keep everybody else out, since anyone may be anyone here, and keep a
// ledger from outliving its journal.
func devRules(c *config.Config) []settings.Fault {
	var fs []settings.Fault
	if config.ListenProblem(c.Listen) == "" && !config.IsLoopback(c.Listen) {
		fs = append(fs, c.Fault("listen", "dev takes anybody's word for who they are, so it serves on loopback only, such as 127.0.0.1:8080; see dibs serve"))
	}
	switch passing := !c.Given("data") && !sqlledger.InServer(c.Ledger); {
	case passing && c.OnRedis():
		fs = append(fs, c.Fault("data", "without it the ledger is removed at the end, and what stays in Redis would not fit the next one: give --data, or --ledger in a server"))
	case passing && c.Given("ledger"):
		fs = append(fs, c.Fault("ledger", "without --data the journal is removed at the end, and a ledger that stays would not fit the next one: give --data too"))
	}
	return fs
}

// dev runs the server until a signal comes.
func dev(cmd *cobra.Command, c *config.Config, version string) (err error) {
	ctx := cmd.Context()
	temporary := !c.Given("data")
	if temporary {
		if c.Data, err = os.MkdirTemp("", "dibs-dev-"); err != nil {
			return fmt.Errorf("making a temporary data folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Data)) }()
	}
	log, err := store.NewLogger(cmd, c)
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: version, DevTokens: true})
	if err != nil {
		return err
	}
	b := banner{version: version, url: s.URL(), engine: c.Engine, data: c.Data, ledger: c.LedgerAt(), temporary: temporary, durability: s.Node.Service.Durability()}
	if b.key, err = devKey(ctx, s.Node.Service, c); err == nil {
		b.campaigns, err = demo(ctx, s.Node.Service)
	}
	if err != nil {
		return errors.Join(err, s.Abandon(ctx))
	}
	b.print(cmd.OutOrStdout())
	return s.Run(ctx)
}

// devKeyFile keeps the admin key of a data folder for the next start.
const devKeyFile = "dev-admin-key"

// devKey returns the admin key: the one given, the folder's, or a new one.
func devKey(ctx context.Context, svc *dibs.Service, c *config.Config) (string, error) {
	if c.AdminKey != "" {
		_, err := svc.EnsureKey(ctx, "dev", c.AdminKey)
		return c.AdminKey, err
	}
	path := filepath.Join(c.Data, devKeyFile)
	if kept, err := os.ReadFile(path); err == nil {
		key := strings.TrimSpace(string(kept))
		if _, err := svc.EnsureKey(ctx, "dev", key); !errors.Is(err, dibs.ErrForbidden) {
			return key, err
		}
		// It was revoked: the folder gets another one.
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	_, key, err := svc.CreateKey(ctx, "dev", dibs.RoleAdmin)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return "", err
	}
	return key, os.WriteFile(path, []byte(key+"\n"), 0o600)
}
