package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/sqlledger"
)

// newServeCommand returns the verb for production.
func newServeCommand(b cli.Build) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve in production; insecure settings are refused",
		Long: `Serve in production. Insecure settings are refused, all of them at once.

serve brings the files of an older version up to date at its start (--migrate=false
leaves that to dibs migrate). SIGTERM drains: serve finishes the requests under way,
settles granted claims for at most --drain, and exits with 0. A second signal ends
the process at once; every answer that was given is kept.`,
		Example: `  export DIBS_JWT_SECRET="$(openssl rand -hex 32)" DIBS_ADMIN_KEY="$(openssl rand -hex 24)"
  dibs serve --data /var/lib/dibs
  dibs serve --config dibs.yaml --listen 0.0.0.0:8080 --behind-proxy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := readServing(cmd)
			if err != nil {
				return err
			}
			if err := cli.Faults(fmt.Sprintf("serve refuses to start, %s wrong:", settingsAre(faults)), faults); err != nil {
				return err
			}
			return serve(cmd, c, b)
		},
	}
	config.AddFlags(cmd, config.ServerKeys)
	return cmd
}

// adminKeyRule reports a server that no administrator could call: neither the
// settings nor the ledger has an API key. It reads the ledger, so that it leaves
// settings alone that name none.
func adminKeyRule(ctx context.Context) config.Rule {
	return func(c *config.Config) []settings.Fault {
		if c.AdminKey != "" || config.LedgerProblem(c.Ledger) != "" || c.Data == "" {
			return nil
		}
		has, err := store.HasAdminKey(ctx, c)
		switch {
		case err != nil:
			return []settings.Fault{c.Fault("admin_key", "is required, since the keys in the ledger cannot be read: "+cli.Message(err))}
		case !has:
			return []settings.Fault{c.Fault("admin_key",
				"is required while the ledger has no API key; openssl rand -hex 24 makes one, and so does dibs key create")}
		}
		return nil
	}
}

// serve runs the server until a signal comes.
func serve(cmd *cobra.Command, c *config.Config, b cli.Build) error {
	ctx := cmd.Context()
	log, err := c.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: b.Version})
	if err != nil {
		return err
	}
	svc := s.Node().Service
	if c.AdminKey != "" {
		if _, err := svc.Access.EnsureKey(ctx, "serve", c.AdminKey); err != nil {
			return errors.Join(cli.Faults("serve refuses to start:", []settings.Fault{c.Fault("admin_key", cli.Message(err))}), s.Close(ctx))
		}
	}
	if s.AdminURL() != s.URL() {
		log.Info("administrators have an address of their own", "admin_url", s.AdminURL())
	}
	log.Info("serving", "url", s.URL(), "version", b.Version, "commit", b.Commit, "go", b.Go,
		"engine", c.EnginePlace(), "ledger", sqlledger.Place(c.LedgerAt()), "journal", c.JournalPlace(), "durability", svc.Durability())
	return s.Run(ctx)
}
