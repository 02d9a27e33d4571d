package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

func newKeyCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys for admin calls",
		Long: `Create, list and revoke API keys for admin calls. The verbs work on the ledger,
beside a running server or without one.`,
	})
	cmd.AddCommand(newKeyCreateCommand(), newKeyListCommand(), newKeyRevokeCommand())
	return cmd
}

// KeyView is an API key as shown; Secret is there once.
type KeyView struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      dibs.Role  `json:"role"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	Secret    string     `json:"secret,omitempty"`
}

func viewKey(k *dibs.APIKey, secret string) KeyView {
	v := KeyView{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: k.CreatedAt, Secret: secret}
	if !k.RevokedAt.IsZero() {
		v.RevokedAt = &k.RevokedAt
	}
	return v
}

// accounts is what verbs use that work on the ledger itself.
type accounts interface {
	dibs.Access
	dibs.Trail
}

// noted notes in the audit log what somebody is about to do on the ledger
// itself.
func noted(ctx context.Context, l accounts, action, target string, after any) error {
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
	return l.SaveActs(ctx, []*dibs.Act{{
		ID: dibs.NewActID(now), At: now, Key: name, KeyName: "the command line on " + host, Role: dibs.RoleAdmin,
		Action: action, Target: target, Status: 200, After: raw,
	}})
}

// withLedger runs f on the ledger that the settings name.
func withLedger(cmd *cobra.Command, create bool, f func(ctx context.Context, l accounts) error) (err error) {
	c, err := config.Load(cmd, config.StoreRules)
	if err != nil {
		return err
	}
	l, err := store.OpenLedger(cmd.Context(), c, create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return f(cmd.Context(), l)
}

func newKeyCreateCommand() *cobra.Command {
	var name, output string
	role := string(dibs.RoleAdmin)
	cmd := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Make a key and show its secret, this once",
		Long: `Make a key and show its secret, this once. Its role says what it may do, each as
much as those before it: viewer reads, editor drafts products and campaigns,
publisher runs them and moves claims, admin does everything.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, secret, err := dibs.NewKey(name, dibs.Role(role), time.Now())
			if err != nil {
				return cli.Usage(err)
			}
			err = withLedger(cmd, true, func(ctx context.Context, l accounts) error {
				if err := noted(ctx, l, "create-key", "/keys/"+k.ID, viewKey(k, "")); err != nil {
					return err
				}
				return l.InsertKey(ctx, k)
			})
			if err != nil {
				return err
			}
			t := cli.Table{}
			t.Add("id", k.ID)
			t.Add("name", k.Name)
			t.Add("role", string(k.Role))
			t.Add("secret", secret)
			if output == cli.OutputTable {
				cmd.PrintErrln("The secret is shown this once; the ledger keeps its hash alone.")
			}
			return cli.Show(cmd, output, viewKey(k, secret), &t)
		},
	}
	config.AddFlags(cmd, config.StoreKeys)
	cmd.Flags().StringVar(&name, "name", "", "What the key is for, `NAME`")
	cmd.Flags().Var(cli.OneOf(&role, "viewer", "editor", "publisher", "admin"), "role", "What it may do: viewer, editor, publisher or admin")
	cli.AddOutput(cmd, &output)
	return cmd
}

func newKeyListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all keys, revoked ones too",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views := []KeyView{}
			t := cli.Table{Head: []string{"ID", "NAME", "ROLE", "CREATED", "REVOKED"}}
			err := withLedger(cmd, false, func(ctx context.Context, l accounts) error {
				keys, err := l.Keys(ctx)
				for _, k := range keys {
					views = append(views, viewKey(&k, ""))
					t.Add(k.ID, k.Name, string(k.Role), cli.Moment(k.CreatedAt), cli.Moment(k.RevokedAt))
				}
				return err
			})
			if err != nil {
				return err
			}
			return cli.Show(cmd, output, views, &t)
		},
	}
	config.AddFlags(cmd, config.StoreKeys)
	cli.AddOutput(cmd, &output)
	return cmd
}

func newKeyRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a key; running servers notice within seconds",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := withLedger(cmd, false, func(ctx context.Context, l accounts) error {
				if err := noted(ctx, l, "revoke-key", "/keys/"+args[0], map[string]string{"id": args[0]}); err != nil {
					return err
				}
				return l.RevokeKey(ctx, args[0], time.Now())
			})
			if err != nil {
				return err
			}
			cmd.Println("revoked " + args[0])
			return nil
		},
	}
	config.AddFlags(cmd, config.StoreKeys)
	return cmd
}
