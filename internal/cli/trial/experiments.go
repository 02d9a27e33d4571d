package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/lab/experiments"
)

// newRedisCommand is `dibs lab redis`.
func newRedisCommand() *cobra.Command {
	return newExperimentsCommand(experiments.Redis, "Show what transactions, scripts and persistence of Redis give, and what not",
		`Show what transactions, scripts and the persistence of Redis give, and what they do not:
each property as an experiment on a real server, with what goes wrong and what is right.
The lab starts a redis-server for it, in a temporary folder. docs/LAB.md has a paragraph
for each.`)
}

// newCacheCommand is `dibs lab cache`.
func newCacheCommand() *cobra.Command {
	return newExperimentsCommand(experiments.Cache, "Show the mistakes of a stock in Redis before a database",
		`Show the mistakes of a stock that is kept in Redis before a database: each one as an
experiment on a real server and a real database, with what goes wrong and what is right.
docs/LAB.md has a paragraph for each.`)
}

// workerVerb is the verb of the process that experiments start, and kill.
const workerVerb = "worker"

// newWorkerCommand is `dibs lab worker`, which is for experiments alone.
func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerVerb + " EXPERIMENT ADDRESS FILE",
		Short:  "Sell as the process that an experiment kills",
		Args:   cobra.ExactArgs(3),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return experiments.Work(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newExperimentsCommand returns a verb that runs the experiments of a group. It exits with 1 when one
// did not show what it says, and with 2 when there is no server.
func newExperimentsCommand(group, short, long string) *cobra.Command {
	cfg := experiments.Config{Group: group}
	var list bool
	cmd := cli.WithOutput(&cobra.Command{
		Use:   group + " [NAME…]",
		Short: short,
		Long:  long,
		Example: `  dibs lab ` + group + `
  dibs lab ` + group + ` ` + experiments.All(group)[0].Name + `
  dibs lab ` + group + ` --redis redis://127.0.0.1:6379/9`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listExperiments(cmd, group)
			}
			cfg.Names = args
			return runExperiments(cmd, cfg)
		},
		ValidArgs: experimentNames(group),
	})
	addExperimentFlags(cmd, &cfg, &list)
	return cmd
}

func addExperimentFlags(cmd *cobra.Command, cfg *experiments.Config, list *bool) {
	cmd.Flags().StringVar(&cfg.URL, "redis", "", "Use the empty database there, redis://host:port/9; the lab empties it (default a redis-server that it starts)")
	cmd.Flags().BoolVar(list, "list", false, "Show the experiments instead")
}

func experimentNames(group string) (names []string) {
	for _, e := range experiments.All(group) {
		names = append(names, e.Name)
	}
	return names
}

// listExperiments shows which experiments there are, with the names that results have.
func listExperiments(cmd *cobra.Command, group string) error {
	type listed struct {
		Name  string `json:"name"`
		Claim string `json:"claim"`
	}
	var list []listed
	t := cli.NewTable("EXPERIMENT", "SHOWS")
	for _, e := range experiments.All(group) {
		list = append(list, listed{e.Name, e.Claim})
		t.Add(e.Name, e.Claim)
	}
	return cli.Show(cmd, list, t)
}

// runExperiments runs experiments and shows what they showed, also of those before an error.
func runExperiments(cmd *cobra.Command, cfg experiments.Config) error {
	known := experimentNames(cfg.Group)
	for _, name := range cfg.Names {
		if !slices.Contains(known, name) {
			return cli.Usagef("there is no experiment %q%s; dibs lab %s --list shows all", name, cli.Meant(name, known, ""), cfg.Group)
		}
	}
	cfg.Progress = cmd.ErrOrStderr()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Worker = []string{program, "lab", workerVerb}
	results, err := experiments.Run(cmd.Context(), cfg)
	if errors.Is(err, experiments.ErrNoServer) {
		return cli.Usage(err)
	}
	if len(results) > 0 {
		if err := cli.Show(cmd, results, cli.TableFunc(func(out io.Writer) error { return writeExperiments(out, results) })); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	var not []string
	for i := range results {
		if results[i].Failed != "" {
			not = append(not, results[i].Name)
		}
	}
	if len(not) > 0 {
		return fmt.Errorf("not shown: %s", strings.Join(not, ", "))
	}
	return nil
}

// writeExperiments writes results for people: what each says, what went wrong, and what is right.
func writeExperiments(out io.Writer, results []experiments.Result) error {
	p := cli.PaintFor(out)
	for _, r := range results {
		fmt.Fprintf(out, "\n%s  %s\n", p.Bold(r.Name), r.Claim)
		switch {
		case r.Skipped != "":
			fmt.Fprintf(out, "  left out: %s\n", r.Skipped)
		case r.Failed != "":
			fmt.Fprintf(out, "  NOT SHOWN: %s\n", r.Failed)
		default:
			fmt.Fprintf(out, "  seen   %s\n  right  %s\n", r.Broken, r.Right)
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}
