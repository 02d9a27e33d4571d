package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/sqlledger"
)

// minJWTSecret is the least length of the tokens' secret: HS256 is no stronger
// than its key.
const minJWTSecret = 32

func newServeCommand() *cobra.Command {
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
			c, faults, err := readConfig(cmd, serverRules, serveRules(cmd.Context()))
			if err != nil {
				return err
			}
			if err := asError(fmt.Sprintf("serve refuses to start, %s wrong:", settingsAre(faults)), faults); err != nil {
				return err
			}
			return serve(cmd, c)
		},
	}
	addSettings(cmd, serverKeys)
	return cmd
}

// serveRules are what production asks for.
func serveRules(ctx context.Context) rule {
	return func(c *config) []settings.Fault {
		var fs []settings.Fault
		switch {
		case c.JWTSecret == "" && c.JWTSecretFile == "" && c.JWKSURL == "":
			fs = append(fs, c.fault("jwt_secret", "is required, to tell users apart; openssl rand -hex 32 makes one, and jwks_url can be in its place"))
		case c.JWTSecret != "" && len(c.JWTSecret) < minJWTSecret:
			fs = append(fs, c.fault("jwt_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", minJWTSecret, len(c.JWTSecret))))
		}
		if c.AdminKey == "" && ledgerProblem(c.Ledger) == "" && c.Data != "" {
			fs = append(fs, noAdminKey(ctx, c)...)
		}
		for key, address := range map[string]string{"listen": c.Listen, "admin_listen": c.AdminListen} {
			if c.TLSCert == "" && c.TLSKey == "" && !c.BehindProxy && listenProblem(address) == "" && !isLoopback(address) {
				fs = append(fs, c.fault(key,
					"others could read tokens on the way: give --tls-cert and --tls-key, or --behind-proxy when a proxy in front ends TLS"))
			}
		}
		return fs
	}
}

// noAdminKey finds fault with a server that nobody could administer.
func noAdminKey(ctx context.Context, c *config) []settings.Fault {
	has, err := hasAdminKey(ctx, c)
	switch {
	case err != nil:
		return []settings.Fault{c.fault("admin_key", "is required, since the keys in the ledger cannot be read: "+message(err))}
	case !has:
		return []settings.Fault{c.fault("admin_key",
			"is required while the ledger has no API key; openssl rand -hex 24 makes one, and so does dibs key create")}
	}
	return nil
}

// serve runs the server until a signal comes.
func serve(cmd *cobra.Command, c *config) error {
	ctx := cmd.Context()
	log, err := newLogger(cmd, c)
	if err != nil {
		return err
	}
	s, err := startServer(ctx, c, log, false)
	if err != nil {
		return err
	}
	if c.AdminKey != "" {
		if _, err := s.node.Service.EnsureKey(ctx, "serve", c.AdminKey); err != nil {
			return errors.Join(asError("serve refuses to start:", []settings.Fault{c.fault("admin_key", message(err))}), s.abandon(ctx))
		}
	}
	b := thisBuild()
	if len(s.faces) > 1 {
		log.Info("administrators are served apart", "admin_url", s.adminURL())
	}
	log.Info("serving", "url", s.url(), "version", b.Version, "commit", b.Commit, "go", b.Go,
		"engine", enginePlace(c.Engine), "ledger", sqlledger.Place(c.ledger()), "journal", c.journalPlace(), "durability", s.node.Service.Durability())
	return s.run(ctx)
}
