package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
)

func newKeyCommand() *cobra.Command {
	cmd := family(&cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys for admin calls",
		Long: `Create, list and revoke API keys for admin calls. The verbs work on the ledger,
beside a running server or without one.`,
	})
	cmd.AddCommand(newKeyCreateCommand(), newKeyListCommand(), newKeyRevokeCommand())
	return cmd
}

// keyView is an API key as shown; Secret is there once.
type keyView struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      dibs.Role  `json:"role"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	Secret    string     `json:"secret,omitempty"`
}

func viewKey(k *dibs.APIKey, secret string) keyView {
	v := keyView{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: k.CreatedAt, Secret: secret}
	if !k.RevokedAt.IsZero() {
		v.RevokedAt = &k.RevokedAt
	}
	return v
}

// withLedger runs f on the ledger that the settings name.
func withLedger(cmd *cobra.Command, create bool, f func(ctx context.Context, l dibs.Access) error) (err error) {
	c, err := loadConfig(cmd, storeRules)
	if err != nil {
		return err
	}
	l, err := openLedger(cmd.Context(), c, create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return f(cmd.Context(), l)
}

func newKeyCreateCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Make a key and show its secret, this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, secret, err := dibs.NewKey(name, dibs.RoleAdmin, time.Now())
			if err != nil {
				return &usageError{err}
			}
			err = withLedger(cmd, true, func(ctx context.Context, l dibs.Access) error { return l.InsertKey(ctx, k) })
			if err != nil {
				return err
			}
			t := table{}
			t.add("id", k.ID)
			t.add("name", k.Name)
			t.add("role", string(k.Role))
			t.add("secret", secret)
			if output == outputTable {
				cmd.PrintErrln("The secret is shown this once; the ledger keeps its hash alone.")
			}
			return show(cmd, output, viewKey(k, secret), &t)
		},
	}
	addSettings(cmd, storeKeys)
	cmd.Flags().StringVar(&name, "name", "", "What the key is for, `NAME`")
	addOutput(cmd, &output)
	return cmd
}

func newKeyListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all keys, revoked ones too",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views := []keyView{}
			t := table{head: []string{"ID", "NAME", "ROLE", "CREATED", "REVOKED"}}
			err := withLedger(cmd, false, func(ctx context.Context, l dibs.Access) error {
				keys, err := l.Keys(ctx)
				for _, k := range keys {
					views = append(views, viewKey(&k, ""))
					t.add(k.ID, k.Name, string(k.Role), moment(k.CreatedAt), moment(k.RevokedAt))
				}
				return err
			})
			if err != nil {
				return err
			}
			return show(cmd, output, views, &t)
		},
	}
	addSettings(cmd, storeKeys)
	addOutput(cmd, &output)
	return cmd
}

// moment shows a time, or a dash for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newKeyRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a key; running servers notice within seconds",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := withLedger(cmd, false, func(ctx context.Context, l dibs.Access) error {
				return l.RevokeKey(ctx, args[0], time.Now())
			})
			if err != nil {
				return err
			}
			cmd.Println("revoked " + args[0])
			return nil
		},
	}
	addSettings(cmd, storeKeys)
	return cmd
}
