package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/erasure"
)

// newUserCommand returns the verbs on /v1/users/{user} and /v1/erasures. The server takes them only
// from a key of the role admin.
func newUserCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "user",
		Short: "Show what is stored about a user, and erase it",
		Long: `Show what is stored about a user, and erase it, on the server at --url with an
admin's API key in --admin-key or $DIBS_ADMIN_KEY.`,
	}, byID("show USER", "Show what is stored about a user",
		of(func(c *client.Client) one[erasure.UserRecord] { return c.Erasures.Record }), userTable), newUserEraseCommand(), newUserErasuresCommand())
}

// userTable shows what is stored about a user, a row for each thing. It has ids and numbers, not the
// contents: dibs claim list --user shows the claims themselves.
func userTable(v *erasure.UserRecord) *cli.Table {
	t := cli.NewTable()
	if len(v.Balances) > 0 {
		t = balanceTable(v.Balances)
	}
	for _, c := range v.Campaigns {
		t.Add("claims", fmt.Sprintf("%d of %s", c.Claims, c.CampaignID))
	}
	for _, list := range []struct {
		name string
		ids  []string
	}{{"red packet sent", v.Sent}, {"lottery", v.Lotteries}, {"waiting room", v.Rooms}, {"follows", v.Follows}, {"list", v.Lists}} {
		for _, id := range list.ids {
			t.Add(list.name, id)
		}
	}
	if v.Quarantined > 0 {
		t.Add("in quarantine", v.Quarantined)
	}
	if v.Erasure != nil {
		t.Add("erasure", v.Erasure.ID+" "+string(v.Erasure.State))
	}
	// A user of whom nothing is stored is an answer, not an error: that is what was asked.
	if t.Len() == 0 {
		t.Add("nothing", "nothing is stored about "+v.UserID)
	}
	return t
}

// newUserEraseCommand asks for an erasure, which the server does by itself after the answer. It may
// be repeated: while an erasure is under way the server answers with it. The server refuses a user
// with money on the account, unless --leave-balance says so: nobody could pay it out afterwards. An
// erasure cannot be undone.
func newUserEraseCommand() *cobra.Command {
	var spec erasure.ErasureSpec
	cmd := ask(&cobra.Command{
		Use:   "erase USER",
		Short: "Erase a user: a random pseudonym takes their place",
		Long: `Erase a user: a random pseudonym takes their place, and no record links the two.
Counts, stock and sums of money stay. Data that a campaign still needs is erased when
the campaign is over: the erasure waits for that and continues by itself. The same
command again shows how far it is.

End the user's tokens first: what the user does afterwards is new data.`,
		Example: `  dibs user erase u-42
  dibs user erasures --open`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (erasure.ErasureView, error) {
		v, known, err := s.Erasures.Erase(ctx, s.args[0], spec)
		// Not noteReplay: the erasure may have gone on since, and the answer is of now.
		if known {
			s.note("this erasure was begun before")
		}
		return v, err
	}, erasureColumns.one)
	cmd.Flags().BoolVar(&spec.LeaveBalance, "leave-balance", false, "Erase a user with money on the account, which then belongs to no user; pay it out before")
	return cmd
}

// newUserErasuresCommand lists erasures, page by page, up to --limit, or shows one.
func newUserErasuresCommand() *cobra.Command {
	var open bool
	limit := dibs.MaxPage
	cmd := talk(cli.WithOutput(&cobra.Command{
		Use:   "erasures [ID]",
		Short: "List erasures, newest first, or show one",
		Args:  cobra.MaximumNArgs(1),
	}), func(ctx context.Context, s *session) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		if len(s.args) == 1 {
			v, err := s.Erasures.Get(ctx, s.args[0])
			if err != nil {
				return err
			}
			return cli.Show(s.cmd, v, erasureColumns.one(&v))
		}
		views, err := upTo(s, limit, func(p dibs.Page) (api.ListView[erasure.ErasureView], error) {
			return s.Erasures.List(ctx, open, p)
		})
		if err != nil {
			return err
		}
		return cli.Show(s.cmd, views, erasureColumns.table(&views))
	})
	cmd.Flags().BoolVar(&open, "open", false, "Only those that are not done")
	cmd.Flags().IntVar(&limit, "limit", limit, "At most `N`")
	return cmd
}

// erasureColumns show erasures: what was erased so far, by kind in order of the names, and the
// campaigns that each waits for.
var erasureColumns = columnsOf(func(v *erasure.ErasureView) []any {
	var erased []string
	for _, what := range slices.Sorted(maps.Keys(v.Erased)) {
		erased = append(erased, fmt.Sprintf("%d %s", v.Erased[what], what))
	}
	return []any{v.ID, v.State, v.UserID, v.RequestedAt, strings.Join(erased, ", "), strings.Join(v.WaitsFor, ", ")}
}, "ID", "STATE", "USER", "ASKED FOR", "ERASED", "WAITS FOR")
