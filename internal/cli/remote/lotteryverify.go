package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/gate"
)

// lotteryCheck is what the user compares beyond what the server publishes: what they noted before
// the draw, and the list as they received it. A server that changed both the past and its hashes
// would be caught by these alone.
type lotteryCheck struct {
	seedHash             string
	user, nonce          string
	entries, winnersFile string
}

// lotteryReport is the result of drawing a lottery again.
type lotteryReport struct {
	CampaignID string   `json:"campaign_id"`
	OK         bool     `json:"ok"`
	Entries    int64    `json:"entries"`
	Winners    int64    `json:"winners"`
	Problems   []string `json:"problems"`
	// Mine is the result of the user in question: won, lost or absent.
	Mine string `json:"mine,omitempty"`
}

// errLotteryDiffers makes the verb exit with 1 after it has shown what differs. A lottery that is not
// drawn yet, and a server that is not reached, exit with 1 as well, without a report.
var errLotteryDiffers = errors.New("the lottery differs from what was published")

// newLotteryVerifyCommand draws a lottery again on this machine. It believes the server in nothing
// that can be computed: seed, list and winners must fit the hashes that were published before.
func newLotteryVerifyCommand() *cobra.Command {
	var check lotteryCheck
	cmd := talk(cli.WithOutput(&cobra.Command{
		Use:   "verify ID",
		Short: "Draw a lottery again from what is public, and compare; exit 1 on a difference",
		Example: `  dibs lottery verify phone-draw --seed-hash 6f1c0e…   # as it was before registration
  dibs lottery verify phone-draw --user 42 --nonce 0b5f…   # and am I in it?`,
		Args: cobra.ExactArgs(1),
	}), func(ctx context.Context, s *session) error {
		if (check.user == "") != (check.nonce == "") {
			return cli.Usagef("--user and --nonce belong together")
		}
		r, err := s.verifyLottery(ctx, s.args[0], &check)
		if err != nil {
			return err
		}
		if err := cli.Show(s.cmd, r, r.table()); err != nil {
			return err
		}
		if !r.OK {
			return errLotteryDiffers
		}
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&check.seedHash, "seed-hash", "", "The `HASH` of the seed as it was published before registration")
	f.StringVar(&check.user, "user", "", "Look for the registration of this `USER`, with --nonce")
	f.StringVar(&check.nonce, "nonce", "", "The `NONCE` of that registration")
	f.StringVar(&check.entries, "entries", "", "Read the list from this `FILE` (default the server's list)")
	f.StringVar(&check.winnersFile, "winners", "", "Write the winners' entries to this `FILE`")
	return public(cmd)
}

// verifyLottery draws a lottery again and compares the result with the server's. It collects all
// problems, so that one report has them.
func (s *session) verifyLottery(ctx context.Context, id string, check *lotteryCheck) (*lotteryReport, error) {
	v, err := s.Lotteries.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.DrawnAt == nil {
		return nil, fmt.Errorf("the lottery of %s is not drawn: it is %s", id, v.State)
	}
	// The list may have millions of entries: it is read as a stream, once.
	list, err := s.openEntries(ctx, id, check.entries)
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
	// The list must have come whole, or a missing entry would look like a fraud.
	if err = errors.Join(err, list.Close()); err != nil {
		return nil, err
	}
	r := &lotteryReport{CampaignID: id, Entries: drawn.Entries, Winners: int64(len(drawn.Winners)), Problems: append([]string{}, drawn.Problems...)}
	// The draw above follows the rule of this version: under another rule its result says nothing.
	if v.Rule != gate.LotteryRule {
		r.Problems = append(r.Problems, "the rule is "+v.Rule+", which this version of dibs does not know")
	}
	if check.seedHash != "" && check.seedHash != v.SeedHash {
		r.Problems = append(r.Problems, "the server tells another seed_hash than --seed-hash")
	}
	// Without the value the draw depends on the operator's seed alone.
	if v.PublicValueIs != "" && v.PublicValue == nil {
		r.Problems = append(r.Problems, "a public value was named, and none was told")
	}
	// A value in another spelling may be one of several that the operator tried.
	if v.PublicValueFormat != "" && v.PublicValue != nil {
		announced := &dibs.RoomSpec{PublicValue: v.PublicValueIs, PublicValueFormat: v.PublicValueFormat}
		for _, f := range (&dibs.PublicValueSpec{Value: public}).Faults(announced) {
			r.Problems = append(r.Problems, "the public value "+f.Problem.EN)
		}
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

// openEntries opens the closed list: a file's, or the server's.
func (s *session) openEntries(ctx context.Context, id, file string) (io.ReadCloser, error) {
	if file == "" {
		return s.Lotteries.Entries(ctx, id)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, cli.Usagef("--entries: %w", err)
	}
	return f, nil
}

// writeWinners writes the entries of the winners, one on each line, if a file is named. Entries are
// hashes of user and nonce, and name nobody.
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

// table shows the report, a row for each problem.
func (r *lotteryReport) table() *cli.Table {
	t := cli.Facts("campaign", r.CampaignID, "entries", r.Entries, "winners", r.Winners)
	t.Field("mine", r.Mine)
	for _, p := range r.Problems {
		t.Add("WRONG", p)
	}
	if r.OK {
		t.Add("ok", "seed, list and winners are what was published")
	}
	return t
}
