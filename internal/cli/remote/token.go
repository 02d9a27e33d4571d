package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
)

// TokenVerbs returns the verbs of dibs token that ask a server.
func TokenVerbs() []*cobra.Command {
	return []*cobra.Command{
		newTokenRevokeCommand(),
		listAll("revocations", "List revoked tokens, newest first",
			func(c *client.Client) pages[access.RevocationView] { return c.Tokens.Revocations }, revocationColumns.table),
		byID("allow ID", "Take a revocation back: the tokens are valid again",
			of(func(c *client.Client) one[access.RevocationView] { return c.Tokens.Allow }), revocationColumns.one),
	}
}

// newTokenRevokeCommand ends tokens before their time. A repeat makes another revocation, which does
// no harm.
func newTokenRevokeCommand() *cobra.Command {
	var spec access.RevocationSpec
	var expires time.Duration
	cmd := ask(&cobra.Command{
		Use:   "revoke --user U | --jti ID",
		Short: "Revoke the tokens of a user, or one token",
		Long: `Revoke all tokens of a user that were issued up to now, or one token by its jti. The
server refuses them at once, its other nodes within a second, and closes WebSockets
that were opened with them. A token that is issued afterwards counts: block the user
where tokens are issued. The revocation is forgotten after --expires; by then the
tokens must have ended.`,
		Example: `  dibs token revoke --user 42 --why "the account was taken over"
  dibs token revoke --jti 6f1c0e5d --expires 1h`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) (access.RevocationView, error) {
		if (spec.User == "") == (spec.JTI == "") {
			return access.RevocationView{}, cli.Usagef("name one --user or one --jti")
		}
		if expires != 0 {
			spec.ExpiresAt = time.Now().Add(expires)
		}
		return s.Tokens.Revoke(ctx, spec, "")
	}, revocationColumns.one)
	f := cmd.Flags()
	f.StringVar(&spec.User, "user", "", "All tokens of this `USER` that were issued up to now")
	f.StringVar(&spec.JTI, "jti", "", "The token with this `ID` in its claim jti")
	f.StringVar(&spec.Why, "why", "", "The `REASON`, for other administrators")
	f.DurationVar(&expires, "expires", 0, "Forget the revocation after this `TIME` (default 720h, at most 9600h)")
	return cmd
}

// revocationColumns show revocations.
var revocationColumns = columnsOf(func(v *access.RevocationView) []any {
	before := cli.OrDash("")
	if v.IssuedBefore != nil {
		before = v.IssuedBefore.Format(time.RFC3339)
	}
	return []any{v.ID, cli.OrDash(v.User), cli.OrDash(v.JTI), before, v.ExpiresAt, v.Why}
}, "ID", "USER", "JTI", "ISSUED BEFORE", "EXPIRES", "WHY")
