package remote

import (
	"context"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newFollowerCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "follower",
		Short: "Import, list and count the followers of merchants",
		Long: `Import, list and count the followers of merchants: those of the server at --url,
with the API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign announce tells them
of a campaign.`,
	})
	cmd.AddCommand(newFollowerImportCommand(), newFollowerListCommand(), newFollowerCountCommand())
	return cmd
}

// merchantFlag gives a verb --merchant, which it needs.
func merchantFlag(cmd *cobra.Command, to *string) *cobra.Command {
	cmd.Flags().StringVar(to, "merchant", "", "The merchant, `ID`; required")
	return cmd
}

// needsMerchant says that --merchant is missing.
func needsMerchant(merchant string) error {
	if merchant == "" {
		return cli.Usagef("--merchant is required: say whose followers")
	}
	return nil
}

func newFollowerImportCommand() *cobra.Command {
	var output, merchant string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Have the users of a CSV file follow a merchant",
		Long: `Have the users of a CSV file follow a merchant, beside those who do: user or
user,rank on each line, 10,000,000 at most; a first line that says so is left out.
The higher rank hears first; without one it is 0. When lines cannot be read, nobody
follows, and the first of them are named. An import that is broken off can be
repeated.`,
		Example: `  dibs follower import --merchant shop followers.csv`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needsMerchant(merchant); err != nil {
				return err
			}
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := sendFile(cmd, args[0], "followers", func(file *os.File, told func(int64)) (dibs.FollowersView, error) {
				return api.ImportFollowers(cmd.Context(), merchant, file, told)
			})
			if err != nil {
				return ExplainCall(c, err)
			}
			t := cli.Table{}
			t.Add("merchant", v.Merchant)
			t.Add("imported", strconv.FormatInt(v.Imported, 10))
			t.Add("new", strconv.FormatInt(v.New, 10))
			t.Add("followers", strconv.FormatInt(v.Followers, 10))
			return cli.Show(cmd, output, v, &t)
		},
	}
	return addCall(merchantFlag(cmd, &merchant), &output)
}

func newFollowerListCommand() *cobra.Command {
	var merchant string
	limit := dibs.DefaultPage
	cmd := eventsVerb("list", "List a merchant's followers, the highest rank first, and of equals who has followed longest", cobra.NoArgs,
		func(ctx context.Context, api *client.Client, _ []string) (any, cli.Table, error) {
			t := cli.Table{Head: []string{"USER", "RANK", "SINCE"}}
			if err := needsMerchant(merchant); err != nil {
				return nil, t, err
			}
			l, err := api.Followers(ctx, merchant, dibs.Page{Limit: limit})
			for i := range l.Items {
				f := &l.Items[i]
				t.Add(f.User, strconv.FormatInt(f.Rank, 10), cli.Moment(f.Since))
			}
			return l, t, err
		})
	cmd.Flags().IntVar(&limit, "limit", limit, "How many at most, `N` up to 100")
	return merchantFlag(cmd, &merchant)
}

func newFollowerCountCommand() *cobra.Command {
	var merchant string
	cmd := eventsVerb("count", "Tell how many follow a merchant", cobra.NoArgs,
		func(ctx context.Context, api *client.Client, _ []string) (any, cli.Table, error) {
			t := cli.Table{}
			if err := needsMerchant(merchant); err != nil {
				return nil, t, err
			}
			n, err := api.FollowerCount(ctx, merchant)
			t.Add("merchant", merchant)
			t.Add("followers", strconv.FormatInt(n, 10))
			return map[string]any{"id": merchant, "followers": n}, t, err
		})
	return merchantFlag(cmd, &merchant)
}
