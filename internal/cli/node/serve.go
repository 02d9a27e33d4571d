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
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// newServeCommand returns the verb for production. It refuses settings that are wrong or insecure, all
// at once, with exit code 2; what fails afterwards, such as a database that does not answer, exits
// with 1.
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

// adminKeyRule reports a server that no administrator could call: neither the settings nor the ledger
// has an API key. Such a server could sell nothing, and nobody could change that over HTTP. It reads
// the ledger, so it leaves alone settings that name none: other rules report those.
func adminKeyRule(ctx context.Context) config.Rule {
	return func(c *config.Config) []settings.Fault {
		// Administrators who sign in at an identity provider need no key.
		if c.AdminKey != "" || c.OIDCIssuer != "" || config.LedgerProblem(c.Ledger) != "" || c.Data == "" {
			return nil
		}
		has, err := store.HasAdminKey(ctx, c)
		switch {
		case err != nil:
			return []settings.Fault{c.Fault("admin_key", "is required, since the keys in the ledger cannot be read: "+cli.Message(err))}
		case !has:
			return []settings.Fault{c.Fault("admin_key",
				"is required while the ledger has no API key and oidc_issuer is not set; openssl rand -hex 24 makes one, and so does dibs key create")}
		}
		return nil
	}
}

// serve runs the server until a signal comes, then drains it. Warnings go to the log and stop nothing.
func serve(cmd *cobra.Command, c *config.Config, b cli.Build) error {
	ctx := cmd.Context()
	// After the rules, which judge what the user gave.
	c.SeparateAdmin()
	log, err := c.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	// The log, since nobody may be looking at the terminal of a server.
	for _, w := range warnings(c, cli.Environ(cmd)) {
		log.Warn(w)
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: b.Version, Diagnosis: diagnosed{c, cli.Environ(cmd)}})
	if err != nil {
		return err
	}
	svc := s.Node().Service
	if c.AdminKey != "" {
		// A key that was revoked in the ledger is refused: a restart must not bring it back.
		if _, err := svc.Access.EnsureKey(ctx, "serve", c.AdminKey); err != nil {
			// A fault of the settings, with exit code 2: the same start fails again.
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
