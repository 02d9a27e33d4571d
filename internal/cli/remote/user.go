package remote

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newUserCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "user",
		Short: "Show what there is about a user, and erase it",
		Long: `Show what there is about a user, and erase it: on the server at --url, with the
API key --admin-key or $DIBS_ADMIN_KEY, which must be an admin's.`,
	})
	cmd.AddCommand(newUserShowCommand(), newUserEraseCommand(), newUserErasuresCommand())
	return cmd
}

func newUserShowCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "show USER",
		Short: "Show what there is about a user",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := api.User(cmd.Context(), args[0])
			if err != nil {
				return ExplainCall(c, err)
			}
			t := userTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}, &output)
}

func userTable(v *dibs.UserRecord) cli.Table {
	t := cli.Table{}
	for _, b := range v.Balances {
		t.Add("balance", strconv.FormatInt(b.Amount, 10)+" "+b.Currency+" (minor units)")
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
		t.Add("in quarantine", strconv.FormatInt(v.Quarantined, 10))
	}
	if v.Erasure != nil {
		t.Add("erasure", v.Erasure.ID+" "+string(v.Erasure.State))
	}
	if len(t.Rows) == 0 {
		t.Add("nothing", "there is nothing about "+v.UserID)
	}
	return t
}

func newUserEraseCommand() *cobra.Command {
	var output string
	var spec dibs.ErasureSpec
	cmd := &cobra.Command{
		Use:   "erase USER",
		Short: "Erase a user: a pseudonym that nobody keeps takes the place",
		Long: `Erase a user: a random pseudonym that nobody keeps takes the user's place. Counts,
stock and sums of money stay. What a campaign still needs is erased when the
campaign is over: the erasure waits until then, and goes on by itself. The same
again shows how far it is.

End the user's tokens first: what the user does afterwards is new.`,
		Example: `  dibs user erase u-42
  dibs user erasures --open`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, known, err := api.EraseUser(cmd.Context(), args[0], spec)
			if err != nil {
				return ExplainCall(c, err)
			}
			if known {
				fmt.Fprintln(cmd.ErrOrStderr(), "dibs: this erasure was begun before")
			}
			t := erasuresTable([]dibs.ErasureView{v})
			return cli.Show(cmd, output, v, &t)
		},
	}
	cmd.Flags().BoolVar(&spec.LeaveBalance, "leave-balance", false, "Leave the money on the user's account to nobody; pay it out before")
	return addCall(cmd, &output)
}

func newUserErasuresCommand() *cobra.Command {
	var output string
	var open bool
	cmd := &cobra.Command{
		Use:   "erasures [ID]",
		Short: "List erasures, newest first, or show one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				v, err := api.Erasure(cmd.Context(), args[0])
				if err != nil {
					return ExplainCall(c, err)
				}
				t := erasuresTable([]dibs.ErasureView{v})
				return cli.Show(cmd, output, v, &t)
			}
			l, err := api.Erasures(cmd.Context(), open, dibs.Page{Limit: dibs.MaxPage})
			if err != nil {
				return ExplainCall(c, err)
			}
			t := erasuresTable(l.Items)
			return cli.Show(cmd, output, l.Items, &t)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "Only those that are not done")
	return addCall(cmd, &output)
}

func erasuresTable(views []dibs.ErasureView) cli.Table {
	t := cli.Table{Head: []string{"ID", "STATE", "USER", "ASKED FOR", "ERASED", "WAITS FOR"}}
	for i := range views {
		v := &views[i]
		var erased []string
		for _, what := range slices.Sorted(maps.Keys(v.Erased)) {
			erased = append(erased, fmt.Sprintf("%d %s", v.Erased[what], what))
		}
		t.Add(v.ID, string(v.State), v.UserID, cli.Moment(v.RequestedAt), strings.Join(erased, ", "), strings.Join(v.WaitsFor, ", "))
	}
	return t
}
