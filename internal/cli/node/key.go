package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/access"
)

// newKeyCommand returns the verbs on API keys. They need no server and no key, only access to the
// ledger: this is how an operator gets the first key. Everyone who can open the ledger can make keys,
// so the ledger's file or password is worth as much as an admin key.
func newKeyCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "key",
		Short: "Create, list, rotate and revoke API keys for admin calls",
		Long: `Create, list, rotate and revoke API keys for admin calls. The verbs work on the
ledger, beside a running server or without one; /v1/keys does the same over HTTP.`,
	}, newKeyCreateCommand(), newKeyListCommand(), newKeyRotateCommand(), newKeyRevokeCommand())
}

// record writes to the admin log what a verb is about to do on the ledger. The entry has the status of
// success, since no later step could correct it: after a failure the log names an action that did not
// happen, never the other way round.
func record(ctx context.Context, l access.Ledger, action, target string, after any) error {
	a, err := actionHere(action, target, after)
	if err != nil {
		return err
	}
	// As the ledger keeps times.
	a.At = time.Now().UTC().Truncate(time.Millisecond)
	a.ID, a.Status = access.NewAdminActionID(a.At), http.StatusOK
	return l.SaveAdminActions(ctx, []*access.AdminAction{a})
}

// actionHere is an action of a verb that needs no server, by the user and the host that it runs on.
func actionHere(action, target string, after any) (*access.AdminAction, error) {
	name := "cli"
	// A container may have no name for its user, and a key must be possible there too.
	if u, err := user.Current(); err == nil {
		name += ":" + u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	raw, err := json.Marshal(after)
	return &access.AdminAction{Key: name, KeyName: "the command line on " + host, Role: access.RoleAdmin, Action: action, Target: target, After: raw}, err
}

// onLedger makes cmd a verb that works on the ledger of the settings, beside a running server or
// without one: what it changes are rows of their own, which the server reads. create allows it to
// make a ledger that does not exist; without it, a mistyped folder would look like an empty one.
func onLedger(cmd *cobra.Command, create bool, do func(cmd *cobra.Command, args []string, l *sqlledger.Ledger) error) *cobra.Command {
	config.AddFlags(cmd, config.StoreKeys)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		c, err := config.Load(cmd, config.StoreRules)
		if err != nil {
			return err
		}
		l, err := store.OpenLedger(cmd.Context(), c, create)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		return do(cmd, args, l)
	}
	return cmd
}

// newKeyCreateCommand makes a key. It writes to the admin log first: a key that no record knows must
// not exist. A repeat makes another key. Scopes narrow what the role allows, and never widen it.
func newKeyCreateCommand() *cobra.Command {
	var secret string
	var k *access.APIKey
	var expires time.Duration
	spec := access.KeySpec{Scopes: &access.Scopes{}}
	role := string(access.RoleAdmin)
	cmd := onLedger(cli.WithOutput(&cobra.Command{
		Use:   "create --name NAME",
		Short: "Make a key and show its secret, only now",
		Long: `Make a key and show its secret, only now. Its role says what it may do; each role
includes those before it: viewer reads, editor drafts products and campaigns,
publisher runs them and moves claims, admin does everything.`,
		Args: cobra.NoArgs,
		// Before the ledger: a key without a name must leave no new ledger behind.
		PreRunE: func(*cobra.Command, []string) (err error) {
			now := time.Now()
			if expires < 0 {
				return cli.Usagef("--expires must be in the future: a duration such as 2160h, not %q", expires)
			}
			if spec.Role = access.Role(role); expires != 0 {
				spec.ExpiresAt = now.Add(expires)
			}
			if k, secret, err = access.NewKey(spec, now); err != nil {
				return cli.Usage(err)
			}
			return nil
		},
	}), true, func(cmd *cobra.Command, _ []string, l *sqlledger.Ledger) error {
		ctx := cmd.Context()
		// View has no secret: the log may be read by others than the key's holder.
		if err := record(ctx, l, "create-key", "/keys/"+k.ID, k.View()); err != nil {
			return err
		}
		if err := l.InsertKey(ctx, k); err != nil {
			return err
		}
		return showNewKey(cmd, k, secret)
	})
	f := cmd.Flags()
	f.StringVar(&spec.Name, "name", "", "The `NAME` of the key: what it is for (required)")
	f.DurationVar(&expires, "expires", 0, "The key ends after this `TIME`, such as 2160h (default never)")
	f.StringSliceVar(&spec.Scopes.Campaigns, "campaign", nil, "Only for the campaign `ID`, or for ID*; may be repeated")
	f.StringSliceVar(&spec.Scopes.Merchants, "merchant", nil, "Only for the merchant `ID`, or for ID*; may be repeated")
	f.StringSliceVar(&spec.Scopes.Actions, "action", nil, "Only for the `OPERATION` of /openapi.json, such as confirm-claim; may be repeated")
	f.Var(cli.OneOf(&role, "viewer", "editor", "publisher", "admin"), "role", "What it may do: viewer, editor, publisher or admin")
	return cli.Require(cmd, "name")
}

// showNewKey shows a key with its secret. The ledger has a hash of the secret only, so nobody can show
// it again; whoever loses it rotates the key.
func showNewKey(cmd *cobra.Command, k *access.APIKey, secret string) error {
	t := cli.Facts("id", k.ID, "name", k.Name, "role", k.Role)
	t.Field("scopes", k.Scopes.String())
	if !k.ExpiresAt.IsZero() {
		t.Add("expires", k.ExpiresAt)
	}
	t.Add("secret", secret)
	if !cli.WantsJSON(cmd) {
		cmd.PrintErrln("The secret is shown only now; the ledger keeps its hash alone.")
	}
	v := k.View()
	v.Secret = secret
	return cli.Show(cmd, v, t)
}

// newKeyRotateCommand makes a key in place of another one, with the same name, role and scopes and
// without an end. A key that is not valid any more has no successor. The old one stays valid for
// --overlap, so that its holders can change over. When the verb fails between the two writes, both
// keys are valid until the old one is revoked.
func newKeyRotateCommand() *cobra.Command {
	var overlap time.Duration
	cmd := onLedger(cli.WithOutput(&cobra.Command{
		Use:   "rotate ID",
		Short: "Make a key in place of another one, which is valid for a while too",
		Args:  cobra.ExactArgs(1),
	}), false, func(cmd *cobra.Command, args []string, l *sqlledger.Ledger) error {
		ctx, id, now := cmd.Context(), args[0], time.Now()
		// The bounds are those of the API; a wrong one is a fault of the command line.
		span, err := (&access.KeyRotation{Overlap: (*dibs.Duration)(&overlap)}).Span()
		if err != nil {
			return cli.Usage(err)
		}
		keys, err := l.Keys(ctx)
		if err != nil {
			return err
		}
		// There are few keys, so the list does.
		at := slices.IndexFunc(keys, func(k access.APIKey) bool { return k.ID == id })
		if at < 0 {
			return fmt.Errorf("there is no API key %s", id)
		}
		k, secret, err := keys[at].Successor(now)
		if err != nil {
			return err
		}
		if err := record(ctx, l, "rotate-key", "/keys/"+id, k.View()); err != nil {
			return err
		}
		if err := l.InsertKey(ctx, k); err != nil {
			return err
		}
		// The new key first: a failure in between must not leave its holder without any.
		if err := l.ExpireKey(ctx, id, now.Add(span)); err != nil {
			return err
		}
		return showNewKey(cmd, k, secret)
	})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "How long the old key is valid too, at most 720h")
	return cmd
}

// newKeyListCommand lists all keys at once, revoked ones too, without their secrets, which no ledger
// has.
func newKeyListCommand() *cobra.Command {
	return onLedger(cli.WithOutput(&cobra.Command{Use: "list", Short: "List all keys, revoked ones too", Args: cobra.NoArgs}), false,
		func(cmd *cobra.Command, _ []string, l *sqlledger.Ledger) error {
			keys, err := l.Keys(cmd.Context())
			if err != nil {
				return err
			}
			// Not nil, so that no keys are [] as JSON.
			shown := []access.KeyView{}
			t := cli.NewTable("ID", "NAME", "ROLE", "CREATED", "EXPIRES", "LAST USED", "REVOKED", "SCOPES")
			for i := range keys {
				k := &keys[i]
				shown = append(shown, k.View())
				t.Add(k.ID, k.Name, k.Role, k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt, cli.OrDash(k.Scopes.String()))
			}
			return cli.Show(cmd, shown, t)
		})
}

// newKeyRevokeCommand revokes a key for good. It may be repeated. Running servers remember keys for
// some seconds, and refuse it after that.
func newKeyRevokeCommand() *cobra.Command {
	return onLedger(cli.WithOutput(&cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key; running servers refuse it within seconds",
		Args:  cobra.ExactArgs(1),
	}), false,
		func(cmd *cobra.Command, args []string, l *sqlledger.Ledger) error {
			ctx, id := cmd.Context(), args[0]
			if err := record(ctx, l, "revoke-key", "/keys/"+id, map[string]string{"id": id}); err != nil {
				return err
			}
			// The row stays, revoked: the log's entries name the key by its id.
			now := time.Now()
			if err := l.RevokeKey(ctx, id, now); err != nil {
				return err
			}
			return cli.Show(cmd, map[string]any{"id": id, "revoked_at": now.UTC()}, cli.Line("revoked "+id))
		})
}
