package remote

import (
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
)

// newSessionCommand returns the verbs on /v1/sessions.
func newSessionCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "session",
		Short: "List and end sessions of the console",
		Long: `List and end sessions of the console and of dibs login, on the server at --url with
the API key --admin-key or $DIBS_ADMIN_KEY: all of them with an admin's key without
scopes, else those that were begun with the same key. A session ends by itself after
twelve hours, and with its key; the key of a person's sign-in ends with the session.`,
	}, listAll("list", "List sessions that last, newest first",
		func(c *client.Client) pages[access.ConsoleSessionView] { return c.Sessions.List }, sessionColumns.table),
		byID("end ID", "End a session: its browser has to sign in again",
			of(func(c *client.Client) one[access.ConsoleSessionView] { return c.Sessions.End }), sessionColumns.one))
}

// sessionColumns show sessions.
var sessionColumns = columnsOf(func(v *access.ConsoleSessionView) []any {
	return []any{v.ID, v.KeyID, v.Name, v.CreatedAt, v.LastUsedAt, v.ExpiresAt, v.Address, v.Agent}
}, "ID", "KEY", "NAME", "BEGAN", "LAST USED", "EXPIRES", "ADDRESS", "BROWSER")
