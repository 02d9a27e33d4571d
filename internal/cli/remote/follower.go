package remote

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"

	"github.com/dibs-dev/dibs/gate"
)

// newFollowerCommand returns the verbs on /v1/merchants/{id}/followers.
func newFollowerCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "follower",
		Short: "Import, list and count the followers of merchants",
		Long: `Import, list and count the followers of merchants, on the server at --url with the
API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign announce tells them of a
campaign.`,
	}, newFollowerImportCommand(), newFollowerListCommand(), newFollowerCountCommand())
}

// ofMerchant gives a verb the flag --merchant, which it requires: without it no call is made.
func ofMerchant(cmd *cobra.Command, to *string) *cobra.Command {
	cmd.Flags().StringVar(to, "merchant", "", "The merchant's `ID` (required)")
	return cli.Require(cmd, "merchant")
}

// newFollowerImportCommand adds followers and removes none. It may be repeated: a user follows a
// merchant once, and the later rank counts.
func newFollowerImportCommand() *cobra.Command {
	var merchant string
	return ofMerchant(ask(&cobra.Command{
		Use:   "import FILE",
		Short: "Make the users of a CSV file follow a merchant",
		Long: `Make the users of a CSV file follow a merchant, beside its present followers. Each
line is user or user,rank, 10,000,000 lines at most; a first line that says so is
skipped. Followers of a higher rank are told first; without a rank it is 0. When the
server cannot read some lines, it names the first of them and changes nothing. An
import that was interrupted can be repeated.`,
		Example: `  dibs follower import --merchant shop followers.csv`,
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (api.FollowersView, error) {
		// ofMerchant has checked the flag by now.
		return sendFile(s, s.args[0], "followers", func(file *os.File, progress func(int64)) (api.FollowersView, error) {
			return s.Followers.Import(ctx, merchant, file, progress)
		})
	}, func(v *api.FollowersView) *cli.Table {
		return cli.Facts("merchant", v.Merchant, "imported", v.Imported, "new", v.New, "followers", v.Followers)
	}), &merchant)
}

// newFollowerListCommand lists one page of followers, those who are told first: a merchant may have
// millions. The server bounds --limit.
func newFollowerListCommand() *cobra.Command {
	var merchant string
	limit := dibs.DefaultPage
	cmd := ask(&cobra.Command{
		Use:   "list",
		Short: "List a merchant's followers: the highest rank first, then the longest following",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, s *session) (api.ListView[gate.Follower], error) {
		return onePage(s, limit, func(p dibs.Page) (api.ListView[gate.Follower], error) { return s.Followers.List(ctx, merchant, p) })
	}, columnsOf(func(f *gate.Follower) []any { return []any{f.User, f.Rank, f.Since} }, "USER", "RANK", "SINCE").list)
	cmd.Flags().IntVar(&limit, "limit", limit, "At most `N`, up to 100")
	return ofMerchant(cmd, &merchant)
}

// followerCount is how many users follow a merchant.
type followerCount struct {
	Followers int64  `json:"followers"`
	Merchant  string `json:"id"`
}

// newFollowerCountCommand counts followers without reading them page by page.
func newFollowerCountCommand() *cobra.Command {
	var merchant string
	return ofMerchant(ask(&cobra.Command{Use: "count", Short: "Count the followers of a merchant", Args: cobra.NoArgs},
		func(ctx context.Context, s *session) (followerCount, error) {
			n, err := s.Followers.Count(ctx, merchant)
			return followerCount{n, merchant}, err
		}, func(c *followerCount) *cli.Table { return cli.Facts("merchant", c.Merchant, "followers", c.Followers) }), &merchant)
}
