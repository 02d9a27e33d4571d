package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/node"
)

// newDevCommand returns the verb for trying dibs out. It takes all settings of serve, so that moving
// to production changes little but the verb. Its own rules (config.DevRules) keep it on loopback,
// since the token dev_42 lets any caller be user 42.
func newDevCommand(b cli.Build) *cobra.Command {
	open := false
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on this machine with demo campaigns and ready-made curl lines",
		Long: `Serve on this machine with demo campaigns, an admin key and ready-made curl
lines. The token dev_42 stands for user 42; no other verb accepts it. Without --data
everything is in a temporary folder, which dev removes at its end. With --open the
browser shows the console, signed in.`,
		Args: cobra.NoArgs,
		RunE: config.With(func(cmd *cobra.Command, c *config.Config) error {
			return dev(cmd, c, b.Version, open)
		}, config.ServerRules, config.DevRules),
	}
	config.AddFlags(cmd, config.ServerKeys)
	// Its own default is none that serve has.
	data := cmd.Flags().Lookup("data")
	data.DefValue, data.Usage = "", data.Usage+" (default a temporary one)"
	cmd.Flags().BoolVar(&open, "open", false, "Open the console in the browser, signed in by the code that is printed")
	return cmd
}

// dev runs the server until a signal comes. The order of its steps matters: the server starts first,
// since demo campaigns and keys are made by its services; the banner comes last, when all that it
// shows works. After an error the server is closed, so that the next start finds its files whole.
func dev(cmd *cobra.Command, c *config.Config, version string, open bool) (err error) {
	ctx := cmd.Context()
	// The default folder is for serve: what dev leaves there would be served as real.
	temporary := !c.Given("data")
	if temporary {
		if c.Data, err = os.MkdirTemp("", "dibs-dev-"); err != nil {
			return fmt.Errorf("making a temporary data folder: %w", err)
		}
		// s.Run returns when the server is closed, so nothing uses the folder any more.
		defer func() { err = errors.Join(err, os.RemoveAll(c.Data)) }()
	}
	log, err := c.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: version, DevTokens: true, Diagnosis: diagnosed{c, cli.Environ(cmd)}})
	if err != nil {
		return err
	}
	svc := s.Node().Service
	b := banner{
		version: version, url: s.URL(), engine: c.Engine[0], data: c.Data, ledger: c.LedgerAt(), temporary: temporary, durability: svc.Durability(),
	}
	if b.key, err = devKey(ctx, svc, c); err == nil {
		b.campaigns, err = demo(ctx, svc)
		// The address has a code that signs in once, not the key.
		b.login = s.ConsoleURL(b.key)
	}
	if err == nil {
		err = b.print(cmd.OutOrStdout())
	}
	if err != nil {
		// Run was not called, which would have closed it.
		return errors.Join(err, s.Close(ctx))
	}
	if open {
		showConsole(b.login, log)
	}
	return s.Run(ctx)
}

// showConsole opens the console's address in the browser. The server runs all the same when that
// fails: the address was printed, and the user can open it.
func showConsole(address string, log *slog.Logger) {
	warn := func(err error) {
		if err != nil {
			log.Warn("the browser did not open the console; open the printed address yourself", "err", err)
		}
	}
	if err := openInBrowser(runtime.GOOS, address, warn); err != nil {
		warn(err)
	}
}

// devKeyFile keeps the admin key of a data folder for the next start: the ledger has its hash alone.
const devKeyFile = "dev-admin-key"

// devKey returns the admin key: the one in the settings, or the folder's, or a new one that it writes
// to the folder, readable by this user alone. A key in the settings that was revoked is an error, as
// with serve.
func devKey(ctx context.Context, svc *node.Service, c *config.Config) (string, error) {
	if c.AdminKey != "" {
		_, err := svc.Access.EnsureKey(ctx, "dev", c.AdminKey)
		return c.AdminKey, err
	}
	path := filepath.Join(c.Data, devKeyFile)
	if kept, err := os.ReadFile(path); err == nil {
		key := strings.TrimSpace(string(kept))
		// The ledger may be a new one beside an old folder: it gets the key that the user has noted.
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
