package node

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

// maxTokens bounds the tokens of one call: as many as an audience has users.
const maxTokens = 10_000_000

// tokenFlags say which tokens to sign: one for user, or count of them.
type tokenFlags struct {
	user           string
	ttl            time.Duration
	count          int
	prefix, format string
}

// newTokenCommand returns the verb that signs tokens, for tests and load tools: in production the shop
// signs the tokens of its users. It calls no server and opens nothing: whoever has the secret can sign.
// It signs with the first secret, jwt_secret if there is one.
func newTokenCommand() *cobra.Command {
	o := tokenFlags{format: "lines"}
	cmd := &cobra.Command{
		Use:   "token --user U",
		Short: "Sign tokens for users with the server's JWT secret; revoke tokens",
		Example: `  dibs token --user 42
  dibs token --count 2000 --prefix u --format csv > tokens.csv    # for load tools`,
		Args: cobra.NoArgs,
		RunE: config.With(func(cmd *cobra.Command, c *config.Config) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			secrets, err := c.JWTSecrets()
			if err != nil {
				return err
			}
			// JWTSecrets is not empty here: TokenRules require one.
			return o.write(cmd.OutOrStdout(), secrets[0])
		}, config.TokenRules),
	}
	config.AddFlags(cmd, []string{"jwt_secret", "jwt_secret_file"})
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "The `USER` that the token is for")
	f.DurationVar(&o.ttl, "ttl", time.Hour, "How long the tokens are valid")
	f.IntVar(&o.count, "count", 0, "Sign tokens for `N` users, named by --prefix and a number from 1")
	f.StringVar(&o.prefix, "prefix", "u", "The beginning of the names of those users")
	f.Var(cli.OneOf(&o.format, "lines", "csv", cli.OutputJSON), "format", "lines (a token on each), csv (user,token with a head) or json (an object on each line)")
	f.Var(f.Lookup("format").Value, "output", "The same as --format, as other verbs call it")
	return cmd
}

// check refuses flags that name no user, or users that the server would refuse. The longest name is
// that of the last user, so checking it checks all.
func (o *tokenFlags) check(cmd *cobra.Command) error {
	switch {
	case (o.user == "") == (o.count == 0):
		return cli.Usagef("name one --user or a --count of them")
	case o.user != "" && !dibs.IsID(o.user):
		return cli.Usagef("--user must be 1-64 characters of A-Z a-z 0-9 . _ -")
	case cmd.Flags().Changed("count") && (o.count < 1 || o.count > maxTokens):
		return cli.Usagef("--count must be from 1 to %d", maxTokens)
	// The greatest number has the most digits.
	case o.count > 0 && !dibs.IsID(o.prefix+strconv.Itoa(o.count)):
		return cli.Usagef("--prefix must be of A-Z a-z 0-9 . _ - and leave room for the number in 64 characters")
	case o.ttl < time.Second:
		return cli.Usagef("--ttl must be at least 1s")
	}
	return nil
}

// write signs the tokens and writes one on each line, as they are signed: millions of them are not
// held in memory.
func (o *tokenFlags) write(out io.Writer, secret []byte) error {
	w := bufio.NewWriter(out)
	if o.format == "csv" {
		fmt.Fprintln(w, "user,token")
	}
	for i := range max(o.count, 1) {
		user := o.user
		if o.count > 0 {
			user = o.prefix + strconv.Itoa(i+1)
		}
		token, err := httpapi.IssueToken(secret, user, o.ttl)
		if err != nil {
			return err
		}
		switch o.format {
		case "csv":
			token = user + "," + token
		case cli.OutputJSON:
			// Neither a user nor a token has a character that JSON escapes.
			token = fmt.Sprintf(`{"user":%q,"token":%q}`, user, token)
		}
		fmt.Fprintln(w, token)
	}
	return w.Flush()
}
