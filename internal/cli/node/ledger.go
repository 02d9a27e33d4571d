package node

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// newLedgerCommand returns the verbs on what the ledger keeps encrypted.
func newLedgerCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "ledger",
		Short: "Exchange the keys of the ledger: that from outside, and those that dibs has made",
	}, newReencryptCommand(), newRenewCommand())
}

// renewable are the names of the secrets that dibs has made and can make anew: of tickets and
// admissions, of limits, of cookies. That of claim ids cannot: nothing else reads the ids that
// there are.
var renewable = []string{"gate", "limit", "session"}

// newRenewCommand has the nodes make their keys anew: for an installation whose ledger was copied.
func newRenewCommand() *cobra.Command {
	return onLedger(cli.WithOutput(&cobra.Command{
		Use:   "renew-keys",
		Short: "Let nodes make the keys of tickets, cookies and limits anew",
		Long: `Delete the keys that dibs has made for tickets and admissions, for the console's
cookies and for the names that limits count: for an installation of which somebody has
a copy of the ledger. Nodes that run make new ones, and use them within about two
seconds; one that is started later does, too. Do it at a quiet hour: meanwhile a ticket
or an admission of one node may be refused by another, and the client fetches it again.
Those from before are good for a minute. Administrators sign in again, and limits of
users, addresses and devices count anew. The key of claim ids stays, since it alone
reads the ids that there are. Nodes of an older version need a restart.`,
		Example: `  dibs ledger renew-keys`,
		Args:    cobra.NoArgs,
	}), false, func(cmd *cobra.Command, _ []string, l *sqlledger.Ledger) error {
		ctx := cmd.Context()
		if err := record(ctx, l, "renew-keys", "/ledger/keys", map[string][]string{"keys": renewable}); err != nil {
			return err
		}
		n, err := l.ForgetSecrets(ctx, renewable...)
		if err != nil {
			return err
		}
		return cli.Show(cmd, map[string]int64{"renewed": n}, cli.Facts("renewed", n))
	})
}

// reencrypted is what the verb did.
type reencrypted struct {
	Changed int   `json:"changed"`
	Items   int64 `json:"items"`
}

// newReencryptCommand stores the secrets of webhooks, and codes, under the first key of
// ledger_key_file, beside running servers that have that key too. It may be repeated, and
// changes nothing then.
func newReencryptCommand() *cobra.Command {
	var plain bool
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "reencrypt",
		Short: "Store secrets and codes under the first key of ledger_key_file",
		Long: `Store the secrets of webhooks under the first key of --ledger-key-file, whether they
are plain or under another of its keys; without a file, store them plain, for which
there must be no encrypted one. Encrypted codes and seats of campaigns come under that
key too, and with --encrypt-codes plain ones as well. Servers may run meanwhile when
they have the key. --plain-codes stores codes and seats plain again: do so when no
server has --encrypt-codes any more.`,
		Example: `  openssl rand -hex 32 | cat - keys > keys.new && mv keys.new keys   # on every node; then, once:
  dibs ledger reencrypt --ledger-key-file keys`,
		Args: cobra.NoArgs,
		RunE: config.With(func(cmd *cobra.Command, c *config.Config) error {
			if plain && c.EncryptCodes {
				return cli.Usagef("--plain-codes and encrypt_codes exclude each other: leave one of them out")
			}
			r, err := reencrypt(cmd.Context(), c, plain)
			if err != nil {
				return err
			}
			return cli.Show(cmd, r, cli.Facts("changed", r.Changed, "items", r.Items))
		}, config.StoreRules),
	})
	config.AddFlags(cmd, config.StoreKeys)
	cmd.Flags().BoolVar(&plain, "plain-codes", false, "store codes and seats plain again")
	return cmd
}

// reencrypt does it on the ledger of the settings.
func reencrypt(ctx context.Context, c *config.Config, plain bool) (r reencrypted, err error) {
	l, err := store.OpenLedger(ctx, c, false)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := record(ctx, l, "reencrypt", "/ledger/secrets", map[string]bool{"encrypt_codes": c.EncryptCodes, "plain_codes": plain}); err != nil {
		return r, err
	}
	if r.Changed, err = l.Reencrypt(ctx); err != nil {
		return r, err
	}
	r.Items, err = l.ReencryptItems(ctx, plain)
	return r, err
}
