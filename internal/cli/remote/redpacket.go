package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/redpacket"
)

// newRedPacketCommand returns the verbs on red packets. Only create calls a server: split and
// fairness run the server's own code on this machine, with no settings.
func newRedPacketCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "redpacket",
		Short: "Send a red packet, divide a total, measure how fair a split is",
		Long: `Send a red packet, by a server; or, without a server, divide a total and measure how
fair its split is. dibs account puts money on the sender's account; dibs campaign shows
the red packet and ends it.`,
	}, newPacketCommand(), newSplitCommand(), newFairnessCommand())
}

// packetFlags are a red packet as flags describe it. The numbers are texts, so that all of them can
// be judged at once: a flag of a number is refused alone, before the others are read.
type packetFlags struct {
	currency                  string
	total, count, least, most string
	split                     dibs.Split
}

// add adds the flags of what is divided.
func (o *packetFlags) add(cmd *cobra.Command) {
	o.split = dibs.DoubleMean
	f := cmd.Flags()
	f.StringVar(&o.total, "total", "", "The sum of all shares, an `AMOUNT` such as 100.00CNY")
	f.StringVar(&o.currency, "currency", "CNY", "The currency, a `CODE` such as CNY, of amounts that do not name it")
	f.StringVar(&o.count, "count", "", "Divide it into `N` shares")
	f.Var(cli.OneOf(&o.split, dibs.Splits()...), "split", "The `SPLIT`, how the total is divided: double_mean, line_cut or equal")
	f.StringVar(&o.least, "min", "1", "The least share, an `AMOUNT` such as 0.01CNY; a whole number without a currency is of minor units")
	f.StringVar(&o.most, "max", "0", "The greatest share, an `AMOUNT` such as 500CNY; 0 for no limit")
}

// read returns the red packet, and a fault for each flag that cannot be read; such a field is 0. The
// currency of the total is that of all amounts.
func (o *packetFlags) read(cmd *cobra.Command) (spec dibs.RedPacketSpec, unread []settings.Fault) {
	fault := func(flag, problem string) {
		if problem != "" {
			unread = append(unread, settings.Fault{Key: "--" + flag, Problem: problem})
		}
	}
	spec.Split = o.split
	total, problem := readAmount(o.total, o.currency)
	total.warn(cmd, "total", o.total)
	spec.Total = total.Money
	spec.Total.Currency = cmp.Or(spec.Total.Currency, o.currency)
	fault("total", problem)
	spec.Count, problem = wholeNumber(o.count)
	fault("count", problem)
	for _, bound := range []struct {
		flag, text string
		to         *int64
	}{{"min", o.least, &spec.Min}, {"max", o.most, &spec.Max}} {
		m, problem := readAmount(bound.text, spec.Total.Currency)
		if *bound.to = m.Amount; problem == "" && m.Currency != spec.Total.Currency {
			problem = "must be in " + spec.Total.Currency + ", as the total is"
		}
		fault(bound.flag, problem)
	}
	return spec, unread
}

// readAmount reads an amount, or says what is wrong with it.
func readAmount(text, currency string) (amount, string) {
	if text == "" {
		return amount{}, "is required, such as 100.00CNY"
	}
	a, err := parseMoney("", text, currency)
	if err != nil {
		return amount{}, strings.TrimSpace(err.Error())
	}
	return a, ""
}

// wholeNumber reads a number, or says what is wrong with it.
func wholeNumber(text string) (n int64, problem string) {
	if text == "" {
		return 0, "is required"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, ""
	}
	return 0, fmt.Sprintf("must be a whole number, not %q", text)
}

// The heads of the lists of faults.
const (
	undividable  = "this red packet cannot be divided:"
	unmeasurable = "this red packet cannot be measured:"
)

// withFlags adds the faults of a red packet's fields, as faults of their flags, to those of flags
// that hold no number. A flag has one fault at most: a text that is no number became 0, which
// Faults would refuse a second time, for a reason that is not the user's.
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

// seedBytes returns the randomness of a numbered seed: the same bytes on every machine, so that a
// division that a page shows can be repeated. It is not for real red packets, whose shares nobody
// may foresee.
func seedBytes(n uint64) io.Reader {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(n >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// caption says what was divided, and how.
func caption(p dibs.RedPacketSpec) string {
	of := func(amount int64) string { return moneyDigits(dibs.Money{Amount: amount, Currency: p.Total.Currency}) }
	bounds := "at least " + of(p.Min)
	if p.Max != 0 {
		bounds += " and at most " + of(p.Max)
	}
	return fmt.Sprintf("%s in %s shares by %s, %s each", amountText(&p.Total), humanize.Comma(p.Count), p.Split, bounds)
}

// division is a total that was divided once.
type division struct {
	RedPacket dibs.RedPacketSpec `json:"redpacket"`
	Shares    []int64            `json:"shares"`
	Sum       int64              `json:"sum"`
}

// newSplitCommand divides a total by the code that the server divides with. Without --seed it takes
// unpredictable randomness, as the server does. Faults of the flags exit with 2, all at once.
func newSplitCommand() *cobra.Command {
	var o packetFlags
	var seed uint64
	cmd := cli.WithOutput(&cobra.Command{
		Use:     "split --total AMOUNT --count N",
		Short:   "Divide a total once and show the shares and their sum",
		Example: `  dibs redpacket split --total 100.00CNY --count 10 --split line_cut --min 1CNY`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, unread := o.read(cmd)
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
			of := spec.Total
			for i, share := range shares {
				of.Amount = share
				d.Sum += share
				t.Add(i+1, moneyDigits(of))
			}
			of.Amount = d.Sum
			t.Add("sum", moneyDigits(of))
			return cli.Show(cmd, d, t)
		},
	})
	o.add(cmd)
	cmd.Flags().Uint64Var(&seed, "seed", 0, "The seed `N` always divides a total alike; without a seed the shares are unpredictable")
	return cmd
}

// newFairnessCommand measures a split by dividing many times. With --seed it gives the same numbers
// each time; without, it shows the seed that it took. Ctrl-C ends it without a result.
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
		Example: `  dibs redpacket fairness --total 100.00CNY --count 10 --split double_mean`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A seed is shown, so that the numbers can be repeated; 0 stands for a random one.
			seed = cmp.Or(seed, rand.Uint64())
			spec, unread := o.read(cmd)
			f, err := redpacket.Measure(cmd.Context(), spec, rounds, seedBytes(seed))
			// Measure refuses the fields and rounds itself; its faults join those of the texts.
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

// fairnessTable shows what each place got: a fair split gives each place the same
// mean, whatever its spread.
func fairnessTable(f *redpacket.Fairness, seed uint64) *cli.Table {
	t := cli.NewTable("PLACE", "MEAN", "SPREAD", "LEAST", "MOST", "BEST LUCK")
	t.Caption = fmt.Sprintf("%s, %d rounds, seed %d", caption(f.RedPacket), f.Rounds, seed)
	of := func(amount int64) string {
		return moneyDigits(dibs.Money{Amount: amount, Currency: f.RedPacket.Total.Currency})
	}
	// A mean has a digit more than money has: it tells close ones apart.
	decimals := f.RedPacket.Total.Decimals()
	mean := func(x float64) string { return strconv.FormatFloat(x/math.Pow10(decimals), 'f', decimals+1, 64) }
	line := func(name any, p redpacket.Place) {
		t.Add(name, mean(p.Mean), mean(p.Spread), of(p.Least), of(p.Most), fmt.Sprintf("%.2f%%", 100*p.Best))
	}
	for _, p := range f.Places {
		line(p.Place, p)
	}
	line("all", f.All)
	return t
}
