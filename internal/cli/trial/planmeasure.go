package trial

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/plan"
	"github.com/dibs-dev/dibs/plan/measure"
)

// mostOff is how far a plan may be off before --check exits with 1, as a part of the measured figure.
const mostOff = 0.25

// measuring takes a calibration and writes it. It loads the servers that --engine and --ledger name:
// they must be for tests. A measurement that fails leaves
// an older file as it was.
func (p *planned) measuring(cmd *cobra.Command, version string) error {
	cfg, err := p.servers(cmd)
	if err != nil {
		return err
	}
	cfg.Version = version
	fs := addressFaults(&cfg)
	// The file is not written yet that --check would need.
	if p.compare {
		fs = append(fs, settings.Fault{Key: "--check", Problem: "cannot be combined with --measure: check the file that it writes"})
	}
	if err := cli.Faults("plan cannot measure this:", fs); err != nil {
		return err
	}
	cal, err := measure.Run(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if err := writeFile(p.measure, cal.Write); err != nil {
		return fmt.Errorf("--measure: %w", err)
	}
	return cli.Show(cmd, cal, cli.Line(fmt.Sprintf("%s has what a claim costs here; use it with --calibration %[1]s", p.measure)))
}

// addressFaults lists what is wrong with the addresses of the engine and the ledger.
func addressFaults(cfg *measure.Config) (fs []settings.Fault) {
	if problem := config.EngineProblem(cfg.Engine); cfg.Engine != "" && problem != "" {
		fs = append(fs, settings.Fault{Key: "--engine", Problem: problem})
	}
	if problem := config.LedgerProblem(cfg.Ledger); problem != "" {
		fs = append(fs, settings.Fault{Key: "--ledger", Problem: problem})
	}
	return fs
}

// checking compares the plan with rehearsals on servers of its own, of the memory engine and SQLite
// or of what --engine and --ledger name. It shows all figures before it fails, and exits with 1 when
// the worst is off by more than mostOff: the machine was busy, or the calibration is of another one.
func (p *planned) checking(cmd *cobra.Command) error {
	cfg, err := p.servers(cmd)
	if err != nil {
		return err
	}
	fs := addressFaults(&cfg)
	if engine, _ := cfg.Kinds(); cfg.Shards < 0 || cfg.Shards > 1 && engine == plan.Memory {
		fs = append(fs, settings.Fault{Key: "--shards", Problem: "must be a number, and more than one need Redis as the --engine of a check"})
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
	var all []*measure.Comparison
	worst := 0.0
	err = measure.Check(cmd.Context(), cal, cfg, func(c *measure.Comparison) {
		fmt.Fprintf(cmd.ErrOrStderr(), "rehearsed %d requests\n", c.Requests)
		// Each rehearsal is shown when it is done; the table needs all.
		all, worst = append(all, c), max(worst, c.Worst())
	})
	if err != nil {
		return err
	}
	if err := cli.Show(cmd, all, cli.TableFunc(func(out io.Writer) error { return measure.Table(out, all) })); err != nil {
		return err
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
	cfg = measure.Config{Data: p.data, Progress: cmd.ErrOrStderr()}
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
