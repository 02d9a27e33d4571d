package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newServeCommand(b cli.Build) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve in production; insecure settings are refused",
		Long: `Serve in production. Insecure settings are refused, all of them at once.

The files of an older version are brought up to date at start (--migrate=false
leaves that to dibs migrate). SIGTERM drains: requests under way are finished,
what was granted is settled for at most --drain, and the exit code is 0. A
second signal ends the process at once; nothing that was answered is lost.`,
		Example: `  export DIBS_JWT_SECRET="$(openssl rand -hex 32)" DIBS_ADMIN_KEY="$(openssl rand -hex 24)"
  dibs serve --data /var/lib/dibs
  dibs serve --config dibs.yaml --listen 0.0.0.0:8080 --behind-proxy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, faults, err := config.Read(cmd, config.ServerRules, serveRules(cmd.Context()))
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

// serveRules are what production asks for.
func serveRules(ctx context.Context) config.Rule {
	return func(c *config.Config) []settings.Fault {
		var fs []settings.Fault
		switch {
		case c.JWTSecret == "" && c.JWTSecretFile == "" && c.JWKSURL == "":
			fs = append(fs, c.Fault("jwt_secret", "is required, to tell users apart; openssl rand -hex 32 makes one, and jwks_url can be in its place"))
		case c.JWTSecret != "" && len(c.JWTSecret) < config.MinJWTSecret:
			fs = append(fs, c.Fault("jwt_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", config.MinJWTSecret, len(c.JWTSecret))))
		}
		if c.AdminKey == "" && config.LedgerProblem(c.Ledger) == "" && c.Data != "" {
			fs = append(fs, noAdminKey(ctx, c)...)
		}
		for key, address := range map[string]string{"listen": c.Listen, "admin_listen": c.AdminListen} {
			if c.TLSCert == "" && c.TLSKey == "" && !c.BehindProxy && config.ListenProblem(address) == "" && !config.IsLoopback(address) {
				fs = append(fs, c.Fault(key,
					"others could read tokens on the way: give --tls-cert and --tls-key, or --behind-proxy when a proxy in front ends TLS"))
			}
		}
		return fs
	}
}

// noAdminKey finds fault with a server that nobody could administer.
func noAdminKey(ctx context.Context, c *config.Config) []settings.Fault {
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

// serve runs the server until a signal comes.
func serve(cmd *cobra.Command, c *config.Config, b cli.Build) error {
	ctx := cmd.Context()
	log, err := store.NewLogger(cmd, c)
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, server.Options{Log: log, Version: b.Version})
	if err != nil {
		return err
	}
	if c.AdminKey != "" {
		if _, err := s.Node.Service.EnsureKey(ctx, "serve", c.AdminKey); err != nil {
			return errors.Join(cli.Faults("serve refuses to start:", []settings.Fault{c.Fault("admin_key", cli.Message(err))}), s.Abandon(ctx))
		}
	}
	if s.Apart() {
		log.Info("administrators are served apart", "admin_url", s.AdminURL())
	}
	log.Info("serving", "url", s.URL(), "version", b.Version, "commit", b.Commit, "go", b.Go,
		"engine", config.EnginePlace(c.Engine), "ledger", sqlledger.Place(c.LedgerAt()), "journal", c.JournalPlace(), "durability", s.Node.Service.Durability())
	return s.Run(ctx)
}
