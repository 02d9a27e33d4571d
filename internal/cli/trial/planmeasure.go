package trial

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/plan"
	"github.com/dibs-dev/dibs/plan/measure"
)

// mostOff is how far a plan may be off before --check exits with 1, as a part of the measured figure.
const mostOff = 0.25

// measuring takes a calibration and writes it. It loads the servers that --engine and --ledger name:
// they must be for tests. A measurement that fails leaves an older file as it was.
func (p *planned) measuring(cmd *cobra.Command, version string) error {
	cfg, err := p.servers(cmd)
	if err != nil {
		return err
	}
	cfg.Version = version
	fs := serverFaults(&cfg)
	switch {
	case p.compare:
		fs = append(fs, shardFaults(&cfg)...)
	case cmd.Flags().Changed("shards"):
		fs = append(fs, settings.Fault{Key: "--shards", Problem: "is for --check: a calibration is good for any number of shards"})
	}
	if p.calibration != "" {
		fs = append(fs, settings.Fault{Key: "--calibration", Problem: "cannot be combined with --measure, which takes a new one"})
	}
	if err := cli.Faults("plan cannot measure this:", fs); err != nil {
		return err
	}
	var cal *plan.Calibration
	var all []*measure.Comparison
	// Minutes of loads are not for a file that cannot be written.
	if err := writable(p.measure); err != nil {
		return cli.Usage(fmt.Errorf("--measure: %w", err))
	}
	if p.compare {
		cal, all, err = measure.RunAndCheck(cmd.Context(), cfg)
	} else {
		cal, err = measure.Run(cmd.Context(), cfg)
	}
	if cal == nil {
		return err
	}
	if err := errors.Join(err, writeFile(p.measure, cal.Write)); err != nil {
		return fmt.Errorf("--measure %s: %w", p.measure, err)
	}
	if p.compare {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s has what a claim costs here\n", p.measure)
		return judge(cmd, all)
	}
	return cli.Show(cmd, cal, cli.Line(fmt.Sprintf("%s has what a claim costs here; use it with --calibration %[1]s", p.measure)))
}

// mostRounds keeps a slip of the finger from measuring for a day.
const mostRounds = 100

// serverFaults lists what is wrong with rounds and requests, and with the addresses of engine and ledger.
func serverFaults(cfg *measure.Config) (fs []settings.Fault) {
	if cfg.Requests < measure.LeastRequests || cfg.Requests > measure.MostRequests {
		fs = append(fs, settings.Fault{Key: "--requests", Problem: fmt.Sprintf("must be a number from %d to %d", measure.LeastRequests, measure.MostRequests)})
	}
	if cfg.Rounds < 1 || cfg.Rounds > mostRounds {
		fs = append(fs, settings.Fault{Key: "--rounds", Problem: fmt.Sprintf("must be a number from 1 to %d", mostRounds)})
	}
	return append(fs, storeFaults(cfg.Engine, cfg.Ledger)...)
}

// shardFaults says what is wrong with the shards of a check.
func shardFaults(cfg *measure.Config) []settings.Fault {
	engine, _ := cfg.Kinds()
	switch {
	case cfg.Shards < 0 || cfg.Shards > plan.MaxShards:
		return []settings.Fault{{Key: "--shards", Problem: fmt.Sprintf("must be from 1 to %d for a check", plan.MaxShards)}}
	case cfg.Shards > 1 && engine == plan.Memory:
		return []settings.Fault{{Key: "--shards", Problem: "must be 1 for a check of the memory engine: more need Redis as --engine"}}
	}
	return nil
}

// writable returns an error when a file cannot be written, and leaves it as it is.
func writable(path string) error {
	_, err := os.Stat(path)
	isNew := errors.Is(err, os.ErrNotExist)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = file.Close()
	if isNew {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// checking compares the plan with rehearsals on servers of its own, of the memory engine and SQLite
// or of what --engine and --ledger name. It shows all figures before it fails, and exits with 1 when
// the worst is off by more than mostOff: the machine was busy, or the calibration is of another one.
func (p *planned) checking(cmd *cobra.Command) error {
	cfg, err := p.servers(cmd)
	if err != nil {
		return err
	}
	fs := append(serverFaults(&cfg), shardFaults(&cfg)...)
	if cmd.Flags().Changed("requests") {
		fs = append(fs, settings.Fault{Key: "--requests", Problem: "is for --measure: the rehearsals of a check have sizes of their own"})
	}
	if err := cli.Faults("plan cannot check this:", fs); err != nil {
		return err
	}
	cal, err := p.costs()
	if err != nil {
		return cli.Usage(err)
	}
	// Before minutes of rehearsals: a file may lack the costs of these.
	if engine, ledger := cfg.Kinds(); cal.Engines[engine] == nil || cal.Ledgers[ledger] == nil {
		return cli.Usagef("--calibration %s: the rehearsals need the costs of %s and %s", p.calibration, engine, ledger)
	}
	all, err := measure.Check(cmd.Context(), cal, cfg)
	if err != nil {
		return err
	}
	return judge(cmd, all)
}

// judge shows what a check found, and fails when a figure is off by more than mostOff.
func judge(cmd *cobra.Command, all []*measure.Comparison) error {
	if err := cli.Show(cmd, all, cli.TableFunc(func(out io.Writer) error { return measure.Table(out, all) })); err != nil {
		return err
	}
	worst := 0.0
	for _, c := range all {
		worst = max(worst, c.Worst())
	}
	if worst > mostOff {
		return fmt.Errorf("a figure is off by %.0f%%, more than %.0f%%: measure again while nothing else runs here", 100*worst, 100*mostOff)
	}
	return nil
}

// servers says how servers are started for measurements: as this very program, so that what is
// measured is the version that plans. Only flags that were given count, since they have defaults for
// the question.
func (p *planned) servers(cmd *cobra.Command) (cfg measure.Config, err error) {
	cfg = measure.Config{Data: p.data, Progress: cmd.ErrOrStderr(), Rounds: p.rounds, Requests: p.loads}
	for flag, field := range map[string]*string{"engine": &cfg.Engine, "ledger": &cfg.Ledger, "durability": &cfg.Durability} {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			*field = f.Value.String()
		}
	}
	if cmd.Flags().Changed("shards") {
		cfg.Shards = p.question.Shards
	}
	if cmd.Flags().Changed("link") {
		cfg.Link = p.question.Link
	}
	cfg.Program, err = os.Executable()
	return cfg, err
}
