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
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/redpacket"
)

// newRedPacketCommand returns the verbs on red packets. Only create calls a server.
func newRedPacketCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "redpacket",
		Short: "Send a red packet, divide a total, measure how fair a split is",
		Long: `Send a red packet, by a server; or, without a server, divide a total and measure how
fair its split is. Amounts are minor units, 10000 for 100.00 yuan. dibs account puts
money on the sender's account; dibs campaign shows the red packet and ends it.`,
	}, newPacketCommand(), newSplitCommand(), newFairnessCommand())
}

// packetFlags are a red packet as flags describe it. The numbers are texts, so that
// all of them can be judged at once.
type packetFlags struct {
	currency                         string
	total, count, least, most, split string
}

// add adds the flags of what is divided.
func (o *packetFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.total, "total", "", "The sum of all shares, an `AMOUNT` in minor units")
	f.StringVar(&o.currency, "currency", "CNY", "The currency, a `CODE` such as CNY")
	f.StringVar(&o.count, "count", "", "Divide it into `N` shares")
	f.StringVar(&o.split, "split", string(dibs.DoubleMean), "The `SPLIT`, how the total is divided: double_mean, line_cut or equal")
	f.StringVar(&o.least, "min", "1", "The least share, an `AMOUNT` in minor units")
	f.StringVar(&o.most, "max", "0", "The greatest share, an `AMOUNT` in minor units; 0 for no limit")
}

// read returns the red packet, and the flags that hold no number.
func (o *packetFlags) read() (spec dibs.RedPacketSpec, unread []settings.Fault) {
	spec.Total.Currency, spec.Split = o.currency, dibs.Split(o.split)
	for _, n := range []struct {
		flag, text string
		to         *int64
	}{{"total", o.total, &spec.Total.Amount}, {"count", o.count, &spec.Count}, {"min", o.least, &spec.Min}, {"max", o.most, &spec.Max}} {
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

// The heads of the lists of faults.
const (
	undividable  = "this red packet cannot be divided:"
	unmeasurable = "this red packet cannot be measured:"
)

// withFlags adds the faults of a red packet's fields, as faults of their flags, to
// those of flags that hold no number. A flag has one fault at most.
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

// seedBytes returns the randomness of a numbered seed.
func seedBytes(n uint64) io.Reader {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(n >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// caption says what was divided, and how.
func caption(p dibs.RedPacketSpec) string {
	bounds := fmt.Sprintf("at least %d", p.Min)
	if p.Max != 0 {
		bounds += fmt.Sprintf(" and at most %d", p.Max)
	}
	return fmt.Sprintf("%d %s (minor units) in %d shares by %s, %s each", p.Total.Amount, p.Total.Currency, p.Count, p.Split, bounds)
}

// division is a total that was divided once.
type division struct {
	RedPacket dibs.RedPacketSpec `json:"redpacket"`
	Shares    []int64            `json:"shares"`
	Sum       int64              `json:"sum"`
}

// newSplitCommand divides a total by the code that the server divides with.
func newSplitCommand() *cobra.Command {
	var o packetFlags
	var seed uint64
	cmd := cli.WithOutput(&cobra.Command{
		Use:     "split --total AMOUNT --count N",
		Short:   "Divide a total once and show the shares and their sum",
		Example: `  dibs redpacket split --total 10000 --count 10 --split line_cut --min 100`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, unread := o.read()
			if err := cli.Faults(undividable, withFlags(unread, spec.Faults(""))); err != nil {
				return err
			}
			var random io.Reader
			if cmd.Flags().Changed("seed") {
				random = seedBytes(seed)
			}
			shares, err := redpacket.Split(spec, random)
			if err != nil {
				return err
			}
			d := division{RedPacket: spec.WithDefaults(), Shares: shares}
			t := cli.NewTable("PLACE", "SHARE")
			t.Caption = caption(d.RedPacket)
			for i, s := range shares {
				d.Sum += s
				t.Add(i+1, s)
			}
			t.Add("sum", d.Sum)
			return cli.Show(cmd, d, t)
		},
	})
	o.add(cmd)
	cmd.Flags().Uint64Var(&seed, "seed", 0, "The seed `N` always divides a total alike; without a seed the shares are unpredictable")
	return cmd
}

// newFairnessCommand measures a split. With --seed it gives the same numbers each time.
func newFairnessCommand() *cobra.Command {
	var o packetFlags
	var seed uint64
	var rounds int
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "fairness --total AMOUNT --count N",
		Short: "Divide a total many times and show what each place got",
		Long: `Divide a total many times and show what each place got: the user who takes a share
first, second and so on. SPREAD is the standard deviation of the place's share, BEST
LUCK how often it had the greatest one. The last line is all places together.`,
		Example: `  dibs redpacket fairness --total 10000 --count 10 --split double_mean`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seed == 0 {
				seed = rand.Uint64()
			}
			spec, unread := o.read()
			f, err := redpacket.Measure(cmd.Context(), spec, rounds, seedBytes(seed))
			var e *dibs.Error
			if errors.As(err, &e) {
				return cli.Faults(unmeasurable, withFlags(unread, e.Faults))
			}
			if err := errors.Join(err, cli.Faults(unmeasurable, unread)); err != nil {
				return err
			}
			return cli.Show(cmd, struct {
				*redpacket.Fairness
				Seed uint64 `json:"seed"`
			}{f, seed}, fairnessTable(f, seed))
		},
	})
	o.add(cmd)
	cmd.Flags().IntVar(&rounds, "rounds", 100_000, "Divide the total `N` times")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "The seed of the divisions, `N`; 0 takes a random one and shows it")
	return cmd
}

// fairnessTable shows what each place got, in minor units.
func fairnessTable(f *redpacket.Fairness, seed uint64) *cli.Table {
	t := cli.NewTable("PLACE", "MEAN", "SPREAD", "LEAST", "MOST", "BEST LUCK")
	t.Caption = fmt.Sprintf("%s, %d rounds, seed %d", caption(f.RedPacket), f.Rounds, seed)
	line := func(name any, p redpacket.Place) {
		t.Add(name, fmt.Sprintf("%.1f", p.Mean), fmt.Sprintf("%.1f", p.Spread), p.Least, p.Most, fmt.Sprintf("%.2f%%", 100*p.Best))
	}
	for _, p := range f.Places {
		line(p.Place, p)
	}
	line("all", f.All)
	return t
}
