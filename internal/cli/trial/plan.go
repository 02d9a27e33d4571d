package trial

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/plan"
	"github.com/dibs-dev/dibs/plan/measure"
)

// planLong is the help of plan.
const planLong = `Say before a rush what it will need. plan simulates the crowd, the nodes, the engine,
the settlers and the ledger, and looks for the fewest nodes at which p99 keeps the
target. It shows the waits, how far the ledger falls behind, memory, connections and
bandwidth, and up to how many requests a second the deployment lasts.

The cost of each step comes from a calibration. The one in the program is of the
project's own machine. --measure takes one on yours and writes it to a file; with
--engine and --ledger as addresses it measures those too, which should be test servers
like those of production. --check rehearses three rushes on servers of its own, or on
those addresses, and shows how far the plan was off. Both together measure and rehearse
by turns, so that a machine that becomes slower meanwhile changes both alike.

It exits with 1 when no deployment that it tried keeps the target, and with --check
when a figure is off by more than a quarter.`

// planned is what the flags of plan say. measure and compare choose another job than the answer.
type planned struct {
	question    plan.Question
	calibration string
	format      string
	page        string

	measure string
	compare bool
	rounds  int
	loads   int
	data    string
}

// newPlanCommand returns the verb that sizes a rush before it comes. It has --format in place of
// --output, for the page. It calls no server unless it measures: the answer is a simulation, whose
// arrivals --seed orders. Exit codes: see planLong; 2 for wrong flags or a bad file.
func newPlanCommand(b cli.Build) *cobra.Command {
	p := planned{format: cli.OutputTable}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what a rush needs before it comes: nodes, waits, lag, memory, and what breaks first",
		Long:  planLong,
		Example: `  dibs plan --users 20000 --stock 500 --over 5s
  dibs plan --users 2e6 --stock 1e5 --over 10s --engine redis --durability durable
  dibs plan --users 2e6 --stock 1e5 --over 10s --engine redis --nodes 4 --html plan.html
  dibs plan --measure costs.json
  dibs plan --measure costs.json --engine redis://127.0.0.1:6379 --ledger mysql://…
  dibs plan --check --calibration costs.json
  dibs plan --measure costs.json --check
  dibs plan --check --calibration costs.json --engine redis://127.0.0.1:6379 --ledger mysql://…`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case p.measure != "":
				return p.measuring(cmd, b.Version)
			case p.compare:
				return p.checking(cmd)
			}
			return p.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	p.flags(f)
	// These take an address too, with --measure.
	for flag, words := range map[string][]cobra.Completion{"engine": {plan.Memory, plan.Redis}, "ledger": {plan.SQLite, plan.MySQL, plan.Postgres}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// flags adds the flags. Some keep a default in the flag where 0 has a meaning of its own.
func (p *planned) flags(f *pflag.FlagSet) {
	q := &p.question
	q.Durability = dibs.LevelDurable
	f.Var(number{&q.Users}, "users", "How many users come, as 2000000 or 2e6")
	f.Var(number{&q.Stock}, "stock", "How many units there are")
	f.DurationVar(&q.Over, "over", 0, "How long they arrive; 0 has them come at once")
	f.Float64Var(&q.Presses, "presses", 1, "How many requests each user sends")
	f.Var(cli.OneOf(&q.Shape, plan.Even, plan.Falling, plan.AtOnce), "shape", "The `SHAPE` of the arrivals: even, falling from twice the mean rate to nothing, or at-once (default even, or at-once without --over)")
	f.Var(number{&q.Wave}, "wave", "How many requests are under way at most, as with rehearse --concurrency; 0 is all of them")
	f.StringVar(&q.Engine, "engine", plan.Memory, "memory or redis")
	f.StringVar(&q.Ledger, "ledger", "", "sqlite, mysql or postgres (default sqlite with the memory engine, else mysql)")
	f.Var(cli.OneOf(&q.Durability, dibs.Levels()...), "durability", "The `LEVEL`: "+cli.Words(dibs.Levels()))
	f.IntVar(&q.Nodes, "nodes", 0, "How many nodes there are; 0 finds the fewest")
	f.Float64Var(&q.Cores, "cores", 4, "How many cores each node has")
	f.IntVar(&q.Shards, "shards", 1, "How many cores of Redis decide, one for each shard of the campaign; -1 finds the fewest")
	f.DurationVar(&q.Target, "target", time.Second, "The p99 that answers are to keep")
	f.DurationVar(&q.Link, "link", 200*time.Microsecond, "The round trip between a node and Redis")
	f.BoolVar(&q.ClientsHere, "clients-here", false, "The clients share the processors of the node, as those of rehearse do")
	f.Uint64Var(&q.Seed, "seed", 1, "The order of the arrivals")
	f.StringVar(&p.calibration, "calibration", "", "Take the costs from this file, which --measure wrote")
	f.Var(cli.OneOf(&p.format, cli.OutputTable, cli.OutputJSON, formatHTML), "format", "The form of the answer: table, json or html")
	f.Var(f.Lookup("format").Value, "output", "The same as --format, as other verbs call it")
	f.StringVar(&p.page, "html", "", "Write the page with charts to this file too")
	f.StringVar(&p.measure, "measure", "", "Instead, measure this machine for some minutes, and write a calibration to this file")
	f.BoolVar(&p.compare, "check", false, "Instead, rehearse three rushes and show how far the plan was off")
	f.IntVar(&p.rounds, "rounds", measure.DefaultRounds, "How often --measure runs each load, and --check each rush; the middle of what they show counts")
	f.IntVar(&p.loads, "requests", measure.DefaultRequests, "How many requests each load of --measure has; fewer are quicker, and the noise counts more")
	f.StringVar(&p.data, "data", "", "Where the servers of --measure and --check keep their files (default the temporary folder, which may not be on a disk)")
}

// cannotPlan heads the faults of the flags.
const cannotPlan = "plan cannot answer this:"

// errTooSmall makes the program exit with 1 when the target is not kept.
var errTooSmall = errors.New("no deployment that plan tried keeps the target")

// run answers the question. The answer is shown before the verb fails, since it says what is short.
func (p *planned) run(cmd *cobra.Command) error {
	// Before the calibration is read: wrong flags are the more likely fault.
	if err := p.check(cmd); err != nil {
		return err
	}
	cal, err := p.costs()
	if err != nil {
		return cli.Usage(err)
	}
	a, err := plan.Ask(cmd.Context(), cal, p.question)
	switch {
	// The file lacks the costs of this engine or ledger: another file or another question helps.
	case errors.Is(err, plan.ErrCalibration):
		return cli.Usage(err)
	case err != nil:
		return err
	}
	write := map[string]func(io.Writer) error{cli.OutputTable: a.Table, cli.OutputJSON: a.JSON, formatHTML: a.HTML}[p.format]
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	// After the output, so that an answer is not lost with the file.
	if p.page != "" {
		if err := writeFile(p.page, a.HTML); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if !a.Keeps {
		return errTooSmall
	}
	return nil
}

// check lists the faults of the flags, and among them the zeros that were given where a zero stands
// for a default: computing with the default instead would answer another question in silence.
func (p *planned) check(cmd *cobra.Command) error {
	q, given := &p.question, cmd.Flags().Changed
	var fs []settings.Fault
	for _, f := range []struct {
		flag string
		zero bool
	}{{"presses", q.Presses == 0}, {"cores", q.Cores == 0}, {"shards", q.Shards == 0}, {"target", q.Target == 0}, {"link", q.Link == 0}} {
		if f.zero && given(f.flag) {
			fs = append(fs, settings.Fault{Key: "--" + f.flag, Problem: "must not be 0"})
		}
	}
	for _, flag := range []string{"rounds", "requests"} {
		if given(flag) {
			fs = append(fs, settings.Fault{Key: "--" + flag, Problem: "is for --measure and --check"})
		}
	}
	var e *dibs.Error
	// Validate lists every fault at once, by the names of fields.
	if errors.As(q.Validate(), &e) {
		fs = append(fs, flagFaults(e)...)
	}
	return cli.Faults(cannotPlan, fs)
}

// costs reads the calibration: the file's, or the one in the program, which is of another machine.
func (p *planned) costs() (*plan.Calibration, error) {
	if p.calibration == "" {
		// The answer says which calibration it used.
		return plan.Default(), nil
	}
	file, err := os.Open(p.calibration)
	if err != nil {
		return nil, fmt.Errorf("--calibration: %w", err)
	}
	defer file.Close()
	// Read refuses a file that lacks a cost, and one of more than a year ago.
	cal, err := plan.Read(file, time.Now())
	if err != nil {
		return nil, fmt.Errorf("--calibration %s: %w", p.calibration, err)
	}
	cal.Source = p.calibration
	return cal, nil
}

// writeFile creates a file, or replaces it. What cannot be written out leaves an older file as it was.
func writeFile(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o666)
}

// number is a flag that takes whole numbers as people write large ones: 2e6, or 2,000,000. It goes
// through a float, which is exact up to 2^53.
type number struct{ to *int64 }

// Set implements pflag.Value.
func (n number) Set(text string) error {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	// A part of a user or of a unit is a mistake, and so is what an int64 cannot hold.
	if err != nil || v != float64(int64(v)) {
		return errors.New("must be a whole number, such as 2000000 or 2e6")
	}
	*n.to = int64(v)
	return nil
}

// String implements pflag.Value.
func (n number) String() string { return strconv.FormatInt(*n.to, 10) }

// Type implements pflag.Value.
func (n number) Type() string { return "number" }
