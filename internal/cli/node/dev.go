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
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/node"
)

// newDevCommand returns the verb for trying dibs out. It takes all settings of serve, so
// that moving to production changes little but the verb.
func newDevCommand(b cli.Build) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on this machine with demo campaigns and ready-made curl lines",
		Long: `Serve on this machine with demo campaigns, an admin key and ready-made curl
lines. The token dev_42 stands for user 42; no other verb accepts it. Without --data
everything is in a temporary folder, which dev removes at its end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd, config.ServerRules, config.DevRules)
			if err != nil {
				return err
			}
			return dev(cmd, c, b.Version)
		},
	}
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
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
	log, err := c.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: version, DevTokens: true})
	if err != nil {
		return err
	}
	svc := s.Node().Service
	b := banner{
		version: version, url: s.URL(), engine: c.Engine, data: c.Data, ledger: c.LedgerAt(), temporary: temporary, durability: svc.Durability(),
	}
	if b.key, err = devKey(ctx, svc, c); err == nil {
		b.campaigns, err = demo(ctx, svc)
	}
	if err == nil {
		err = b.print(cmd.OutOrStdout())
	}
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	return s.Run(ctx)
}

// devKeyFile keeps the admin key of a data folder for the next start.
const devKeyFile = "dev-admin-key"

// devKey returns the admin key: the one in the settings, or the folder's, or a new
// one that it writes to the folder.
func devKey(ctx context.Context, svc *node.Service, c *config.Config) (string, error) {
	if c.AdminKey != "" {
		_, err := svc.Access.EnsureKey(ctx, "dev", c.AdminKey)
		return c.AdminKey, err
	}
	path := filepath.Join(c.Data, devKeyFile)
	if kept, err := os.ReadFile(path); err == nil {
		key := strings.TrimSpace(string(kept))
		if _, err := svc.Access.EnsureKey(ctx, "dev", key); !errors.Is(err, dibs.ErrForbidden) {
			return key, err
		}
		// The key was revoked: the folder gets a new one.
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	_, key, err := svc.Access.CreateKey(ctx, "dev", access.RoleAdmin)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return "", err
	}
	return key, os.WriteFile(path, []byte(key+"\n"), 0o600)
}
