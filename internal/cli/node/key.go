package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"

	"github.com/dibs-dev/dibs/access"
)

// newKeyCommand returns the verbs on API keys. They need no server and no key, only access
// to the ledger: this is how an operator gets the first key.
func newKeyCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys for admin calls",
		Long: `Create, list and revoke API keys for admin calls. The verbs work on the ledger,
beside a running server or without one.`,
	}, newKeyCreateCommand(), newKeyListCommand(), newKeyRevokeCommand())
}

// shownKey is an API key as the verbs show it. Only key create knows the secret: the
// ledger keeps its hash.
type shownKey struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Role      access.Role `json:"role"`
	CreatedAt time.Time   `json:"created_at"`
	RevokedAt *time.Time  `json:"revoked_at,omitempty"`
	Secret    string      `json:"secret,omitempty"`
}

// showKey returns a key as the verbs show it; secret is empty for a key that is not new.
func showKey(k *access.APIKey, secret string) shownKey {
	v := shownKey{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: k.CreatedAt, Secret: secret}
	if !k.RevokedAt.IsZero() {
		v.RevokedAt = &k.RevokedAt
	}
	return v
}

// keyLedger is what the verbs need of a ledger.
type keyLedger interface {
	access.Ledger
}

// record writes to the admin log what a verb is about to do on the ledger.
func record(ctx context.Context, l keyLedger, action, target string, after any) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	name := "cli"
	if u, err := user.Current(); err == nil {
		name += ":" + u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	raw, err := json.Marshal(after)
	if err != nil {
		return err
	}
	return l.SaveActs(ctx, []*access.Act{{
		ID: access.NewActID(now), At: now, Key: name, KeyName: "the command line on " + host, Role: access.RoleAdmin,
		Action: action, Target: target, Status: 200, After: raw,
	}})
}

// onLedger makes cmd a verb that works on the ledger of the settings. create allows
// it to make a ledger that does not exist.
func onLedger(cmd *cobra.Command, create bool, do func(cmd *cobra.Command, args []string, l keyLedger) error) *cobra.Command {
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

// newKeyCreateCommand makes a key. It writes to the admin log first: a key that no record
// knows must not exist.
func newKeyCreateCommand() *cobra.Command {
	var name, secret string
	var k *access.APIKey
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
			if k, secret, err = access.NewKey(name, access.Role(role), time.Now()); err != nil {
				return cli.Usage(err)
			}
			return nil
		},
	}), true, func(cmd *cobra.Command, _ []string, l keyLedger) error {
		ctx := cmd.Context()
		if err := record(ctx, l, "create-key", "/keys/"+k.ID, showKey(k, "")); err != nil {
			return err
		}
		if err := l.InsertKey(ctx, k); err != nil {
			return err
		}
		t := cli.NewTable()
		t.Add("id", k.ID)
		t.Add("name", k.Name)
		t.Add("role", k.Role)
		t.Add("secret", secret)
		if !cli.WantsJSON(cmd) {
			cmd.PrintErrln("The secret is shown only now; the ledger keeps its hash alone.")
		}
		return cli.Show(cmd, showKey(k, secret), t)
	})
	cmd.Flags().StringVar(&name, "name", "", "The `NAME` of the key: what it is for")
	cmd.Flags().Var(cli.OneOf(&role, "viewer", "editor", "publisher", "admin"), "role", "What it may do: viewer, editor, publisher or admin")
	return cmd
}

// newKeyListCommand lists keys without their secrets, which no ledger has.
func newKeyListCommand() *cobra.Command {
	return onLedger(cli.WithOutput(&cobra.Command{Use: "list", Short: "List all keys, revoked ones too", Args: cobra.NoArgs}), false,
		func(cmd *cobra.Command, _ []string, l keyLedger) error {
			keys, err := l.Keys(cmd.Context())
			if err != nil {
				return err
			}
			shown := []shownKey{}
			t := cli.NewTable("ID", "NAME", "ROLE", "CREATED", "REVOKED")
			for i := range keys {
				k := &keys[i]
				shown = append(shown, showKey(k, ""))
				t.Add(k.ID, k.Name, k.Role, k.CreatedAt, k.RevokedAt)
			}
			return cli.Show(cmd, shown, t)
		})
}

// newKeyRevokeCommand revokes a key. It may be repeated.
func newKeyRevokeCommand() *cobra.Command {
	return onLedger(&cobra.Command{Use: "revoke ID", Short: "Revoke a key; running servers refuse it within seconds", Args: cobra.ExactArgs(1)}, false,
		func(cmd *cobra.Command, args []string, l keyLedger) error {
			ctx, id := cmd.Context(), args[0]
			if err := record(ctx, l, "revoke-key", "/keys/"+id, map[string]string{"id": id}); err != nil {
				return err
			}
			if err := l.RevokeKey(ctx, id, time.Now()); err != nil {
				return err
			}
			cmd.Println("revoked " + id)
			return nil
		})
}
