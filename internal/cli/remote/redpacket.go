package remote

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/redpacket"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newRedPacketCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "redpacket",
		Short: "Give a red packet away, divide one, see how fair its split is",
		Long: `Give a red packet away, by a server; or divide one and see how fair its split is,
which needs no server. Amounts are minor units, 10000 for 100.00 yuan. dibs
account puts money on its sender's account; dibs campaign shows and ends it.`,
	})
	cmd.AddCommand(newPacketCommand(), newSplitCommand(), newFairnessCommand())
	return cmd
}

// packetOrder is a red packet as flags describe it.
type packetOrder struct {
	spec                dibs.RedPacketSpec
	total, split        string
	count, least, great string
	seed                uint64
}

func (o *packetOrder) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.total, "total", "", "What all shares sum to, an `AMOUNT` in minor units")
	f.StringVar(&o.spec.Total.Currency, "currency", "CNY", "The currency, a `CODE` such as CNY")
	f.StringVar(&o.count, "count", "", "How many shares, `N`")
	f.StringVar(&o.split, "split", string(dibs.DoubleMean), "How the total is divided: double_mean, line_cut or equal, `SPLIT`")
	f.StringVar(&o.least, "min", "1", "The least share, an `AMOUNT` in minor units")
	f.StringVar(&o.great, "max", "0", "The greatest share, an `AMOUNT` in minor units; 0 for no bound")
}

// redPacket reads the flags, and lists those that cannot be read.
func (o *packetOrder) redPacket() (dibs.RedPacketSpec, []settings.Fault) {
	spec := o.spec
	spec.Split = dibs.Split(o.split)
	var unread []settings.Fault
	for _, n := range []struct {
		flag, text string
		to         *int64
	}{{"total", o.total, &spec.Total.Amount}, {"count", o.count, &spec.Count}, {"min", o.least, &spec.Min}, {"max", o.great, &spec.Max}} {
		var problem string
		if *n.to, problem = wholeNumber(n.flag, n.text); problem != "" {
			unread = append(unread, settings.Fault{Key: "--" + n.flag, Problem: problem})
		}
	}
	return spec, unread
}

// wholeNumber reads a number, or says what is wrong with it.
func wholeNumber(flag, text string) (n int64, problem string) {
	if text == "" {
		return 0, "is required"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, ""
	}
	if flag != "count" && strings.ContainsAny(text, ".,") {
		return 0, fmt.Sprintf("must be whole minor units, such as 10000 for 100.00 CNY, not %q", text)
	}
	return 0, fmt.Sprintf("must be a whole number, not %q", text)
}

// withFlags adds the faults of a red packet's fields to those of flags that could
// not be read, which are told once.
func withFlags(unread []settings.Fault, fs []dibs.Fault) []settings.Fault {
	flags := map[string]string{"/total/amount": "--total", "/total/currency": "--currency"}
	faults := slices.Clone(unread)
	for _, f := range fs {
		flag, ok := flags[f.Field]
		if !ok {
			flag = "--" + strings.TrimPrefix(f.Field, "/")
		}
		if !slices.ContainsFunc(unread, func(u settings.Fault) bool { return u.Key == flag }) {
			faults = append(faults, settings.Fault{Key: flag, Problem: f.Problem.EN})
		}
	}
	return faults
}

// seedBytes is the randomness of a numbered seed.
func seedBytes(n uint64) io.Reader {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(n >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// caption says what was divided.
func caption(p dibs.RedPacketSpec) string {
	bounds := fmt.Sprintf("at least %d", p.Min)
	if p.Max != 0 {
		bounds += fmt.Sprintf(" and at most %d", p.Max)
	}
	return fmt.Sprintf("%d %s (minor units) in %d shares by %s, %s each", p.Total.Amount, p.Total.Currency, p.Count, p.Split, bounds)
}

func newSplitCommand() *cobra.Command {
	var o packetOrder
	var output string
	cmd := &cobra.Command{
		Use:     "split --total AMOUNT --count N",
		Short:   "Divide a total once and show the shares and their sum",
		Example: `  dibs redpacket split --total 10000 --count 10 --split line_cut --min 100`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, unread := o.redPacket()
			if err := cli.Faults("this red packet cannot be divided:", withFlags(unread, spec.Faults(""))); err != nil {
				return err
			}
			var random io.Reader
			if cmd.Flags().Changed("seed") {
				random = seedBytes(o.seed)
			}
			shares, err := redpacket.Split(spec, random)
			if err != nil {
				return err
			}
			return showShares(cmd, output, spec.WithDefaults(), shares)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "Divide as this seed, `N`, divides each time; without it nobody can foresee the shares")
	cli.AddOutput(cmd, &output)
	return cmd
}

func showShares(cmd *cobra.Command, output string, spec dibs.RedPacketSpec, shares []int64) error {
	t := cli.Table{Head: []string{"PLACE", "SHARE"}}
	sum := int64(0)
	for i, s := range shares {
		sum += s
		t.Add(strconv.Itoa(i+1), strconv.FormatInt(s, 10))
	}
	t.Add("sum", strconv.FormatInt(sum, 10))
	if output == cli.OutputTable {
		cmd.Println(caption(spec))
	}
	return cli.Show(cmd, output, struct {
		RedPacket dibs.RedPacketSpec `json:"redpacket"`
		Shares    []int64            `json:"shares"`
		Sum       int64              `json:"sum"`
	}{spec, shares, sum}, &t)
}

func newFairnessCommand() *cobra.Command {
	var o packetOrder
	var output string
	var rounds int
	cmd := &cobra.Command{
		Use:   "fairness --total AMOUNT --count N",
		Short: "Divide a total many times and show what each place got",
		Long: `Divide a total many times and show what each place got: those who come first,
second and so on. SPREAD is the standard deviation of what the place got, BEST
LUCK how often it had the greatest share. The last line has all places together.`,
		Example: `  dibs redpacket fairness --total 10000 --count 10 --split double_mean`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.seed == 0 {
				o.seed = rand.Uint64()
			}
			return o.fairness(cmd, rounds, output)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().IntVar(&rounds, "rounds", 100_000, "How often the total is divided, `N`")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "The seed of the divisions, `N`; 0 takes a random one and shows it")
	cli.AddOutput(cmd, &output)
	return cmd
}

func (o *packetOrder) fairness(cmd *cobra.Command, rounds int, output string) error {
	spec, unread := o.redPacket()
	f, err := redpacket.Measure(cmd.Context(), spec, rounds, seedBytes(o.seed))
	var e *dibs.Error
	if errors.As(err, &e) {
		return cli.Faults("this red packet cannot be measured:", withFlags(unread, e.Faults))
	}
	if err := errors.Join(err, cli.Faults("this red packet cannot be measured:", unread)); err != nil {
		return err
	}
	return showFairness(cmd, output, f, o.seed)
}

func showFairness(cmd *cobra.Command, output string, f *redpacket.Fairness, seed uint64) error {
	t := cli.Table{Head: []string{"PLACE", "MEAN", "SPREAD", "LEAST", "MOST", "BEST LUCK"}}
	line := func(name string, p redpacket.Place) {
		t.Add(name, fmt.Sprintf("%.1f", p.Mean), fmt.Sprintf("%.1f", p.Spread), strconv.FormatInt(p.Least, 10),
			strconv.FormatInt(p.Most, 10), fmt.Sprintf("%.2f%%", 100*p.Best))
	}
	for _, p := range f.Places {
		line(strconv.Itoa(p.Place), p)
	}
	line("all", f.All)
	if output == cli.OutputTable {
		cmd.Printf("%s, %d rounds, seed %d\n", caption(f.RedPacket), f.Rounds, seed)
	}
	return cli.Show(cmd, output, struct {
		*redpacket.Fairness
		Seed uint64 `json:"seed"`
	}{f, seed}, &t)
}
