package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/room"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newLotteryCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "lottery",
		Short: "Show a lottery, tell its public value, draw it again",
		Long: `Show a lottery of a server, the one at --url; tell the public value that it waits
for, with the API key --admin-key or $DIBS_ADMIN_KEY; and draw it again from what
everybody can see. docs/LOTTERY.md has the rule.`,
	})
	cmd.AddCommand(newLotteryShowCommand(), newPublicValueCommand(), newLotteryVerifyCommand())
	return cmd
}

func newLotteryShowCommand() *cobra.Command {
	return lotteryVerb("show ID", "Show how a lottery stands, and what it has fixed so far", cobra.ExactArgs(1),
		func(ctx context.Context, api *client.Client, args []string) (dibs.LotteryView, error) {
			return api.Lottery(ctx, args[0])
		})
}

func newPublicValueCommand() *cobra.Command {
	return lotteryVerb("public-value ID VALUE", "Tell the public value that was named beforehand, once", cobra.ExactArgs(2),
		func(ctx context.Context, api *client.Client, args []string) (dibs.LotteryView, error) {
			return api.TellPublicValue(ctx, args[0], args[1])
		})
}

// lotteryVerb is a verb that answers with a lottery.
func lotteryVerb(use, short string, args cobra.PositionalArgs, do func(context.Context, *client.Client, []string) (dibs.LotteryView, error)) *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := do(cmd.Context(), api, args)
			if err != nil {
				return ExplainCall(c, err)
			}
			t := lotteryTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}, &output)
}

// lotteryTable tells a lottery in the order in which it becomes known.
func lotteryTable(v *dibs.LotteryView) cli.Table {
	t := cli.Table{}
	t.Add("campaign", v.CampaignID)
	t.Add("state", string(v.State))
	t.Add("rule", v.Rule)
	t.Add("winners", strconv.FormatInt(v.Winners, 10))
	t.Add("closes", v.ClosesAt.Format(time.RFC3339))
	t.Add("seed_hash", v.SeedHash)
	t.Add("committed", v.CommittedAt.Format(time.RFC3339))
	if v.PublicValueIs == "" {
		t.Add("public value", "none was named: the operator has to be believed")
	} else {
		t.Add("public value", v.PublicValueIs)
	}
	if v.ListHash != "" {
		t.Add("entries", strconv.FormatInt(v.Entries, 10))
		t.Add("list_hash", v.ListHash)
	}
	if v.PublicValue != nil {
		t.Add("it is", *v.PublicValue)
	}
	if v.DrawnAt != nil {
		t.Add("seed", v.Seed)
		t.Add("key", v.Key)
		t.Add("cutoff", v.Cutoff)
		t.Add("drawn", v.DrawnAt.Format(time.RFC3339))
	}
	return t
}

// lotteryCheck is what is compared beyond what the server tells.
type lotteryCheck struct {
	seedHash    string
	user, nonce string
	file        string
	winnersFile string
}

// lotteryReport is what a second draw found.
type lotteryReport struct {
	CampaignID string   `json:"campaign_id"`
	OK         bool     `json:"ok"`
	Entries    int64    `json:"entries"`
	Winners    int64    `json:"winners"`
	Problems   []string `json:"problems"`
	// Mine is whether the given user has won: won, lost or absent.
	Mine string `json:"mine,omitempty"`
}

var errLotteryDiffers = errors.New("the lottery is not what it should be")

func newLotteryVerifyCommand() *cobra.Command {
	var output string
	var check lotteryCheck
	cmd := &cobra.Command{
		Use:   "verify ID",
		Short: "Draw a lottery again from what is public, and compare; exit 1 on a difference",
		Example: `  dibs lottery verify phone-draw --seed-hash 6f1c0e…   # as it was before registration
  dibs lottery verify phone-draw --user 42 --nonce 0b5f…   # and am I in it?`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (check.user == "") != (check.nonce == "") {
				return cli.Usagef("--user and --nonce belong together")
			}
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			r, err := verifyLottery(cmd.Context(), api, args[0], &check)
			if err != nil {
				return ExplainCall(c, err)
			}
			t := redrawnTable(r)
			if err := cli.Show(cmd, output, r, &t); err != nil {
				return err
			}
			if !r.OK {
				return errLotteryDiffers
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&check.seedHash, "seed-hash", "", "The seed's `HASH` as it was published before registration")
	f.StringVar(&check.user, "user", "", "Look for the registration of this `USER`, with --nonce")
	f.StringVar(&check.nonce, "nonce", "", "The `NONCE` of that registration")
	f.StringVar(&check.file, "entries", "", "Read the list from this `FILE` (default the server's)")
	f.StringVar(&check.winnersFile, "winners", "", "Write the winners' entries to this `FILE`")
	return addCall(cmd, &output)
}

// verifyLottery draws again and compares.
func verifyLottery(ctx context.Context, api *client.Client, id string, check *lotteryCheck) (*lotteryReport, error) {
	v, err := api.Lottery(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.DrawnAt == nil {
		return nil, fmt.Errorf("the lottery of %s is not drawn: it is %s", id, v.State)
	}
	list, err := openEntries(ctx, api, id, check.file)
	if err != nil {
		return nil, err
	}
	public := ""
	if v.PublicValue != nil {
		public = *v.PublicValue
	}
	drawn, err := room.DrawAgain(list, room.Published{
		Seed: v.Seed, SeedHash: v.SeedHash, ListHash: v.ListHash, PublicValue: public, Key: v.Key, Cutoff: v.Cutoff,
		Winners: v.Winners, Entries: v.Entries,
	})
	if err = errors.Join(err, list.Close()); err != nil {
		return nil, err
	}
	r := &lotteryReport{CampaignID: id, Entries: drawn.Entries, Winners: int64(len(drawn.Winners)), Problems: drawn.Problems}
	if v.Rule != dibs.LotteryRule {
		r.Problems = append(r.Problems, "the rule is "+v.Rule+", which this program does not know")
	}
	if check.seedHash != "" && check.seedHash != v.SeedHash {
		r.Problems = append(r.Problems, "the server tells another seed_hash than --seed-hash")
	}
	if v.PublicValueIs != "" && v.PublicValue == nil {
		r.Problems = append(r.Problems, "a public value was named, and none was told")
	}
	if check.user != "" {
		mine := room.EntryHash(id, check.user, check.nonce)
		if r.Mine = drawn.Result(mine); r.Mine == room.Absent {
			r.Problems = append(r.Problems, "the list has no entry of this --user and --nonce")
		}
	}
	r.OK = len(r.Problems) == 0
	return r, writeWinners(check.winnersFile, drawn.Winners)
}

// openEntries opens the closed list.
func openEntries(ctx context.Context, api *client.Client, id, file string) (io.ReadCloser, error) {
	if file == "" {
		return api.LotteryEntries(ctx, id)
	}
	return os.Open(file)
}

func writeWinners(file string, winners []room.Sum) error {
	if file == "" {
		return nil
	}
	var text []byte
	for _, w := range winners {
		text = append(append(text, w.String()...), '\n')
	}
	return os.WriteFile(file, text, 0o644)
}

func redrawnTable(r *lotteryReport) cli.Table {
	t := cli.Table{}
	t.Add("campaign", r.CampaignID)
	t.Add("entries", strconv.FormatInt(r.Entries, 10))
	t.Add("winners", strconv.FormatInt(r.Winners, 10))
	if r.Mine != "" {
		t.Add("mine", r.Mine)
	}
	for _, p := range r.Problems {
		t.Add("WRONG", p)
	}
	if r.OK {
		t.Add("ok", "seed, list and winners are what was published")
	}
	return t
}
