package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/lab"
	"github.com/dibs-dev/dibs/lab/experiments"
	"github.com/dibs-dev/dibs/lab/strategies"
)

// formatHTML is a form of the result that only the lab has.
const formatHTML = "html"

// newLabCommand returns the verb that measures ways to sell. It has --format beside --output, for
// the form that only it has. It exits with 1 when a safe strategy broke a promise or one failed, with
// 2 for wrong flags and for a server that is missing: the user has to install it or leave it out.
func newLabCommand() *cobra.Command {
	var (
		cfg    = lab.Config{Preset: lab.Rush}
		list   bool
		format = cli.OutputTable
		page   string
	)
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run ways to sell scarce goods side by side, and show what each costs and breaks",
		Long: `Run ways to sell scarce goods, from code that sells too much to dibs, one after the
other on the same servers with the same requests. Then count the orders: too many, two
for one user, too few, and users that were told yes and have no order.

Servers that are not named are started for the run, in temporary folders, when they are
installed; the lab removes everything that it made. It exits with 1 when a way that is
known to be safe broke a promise.

Presets: rush, 2,000 users with 5,000 requests at once for 200 units; one-user, one user
with 10,000 requests at once; packets, 100,000 red packets for 20 workers, and for a
crowd.`,
		Example: `  dibs lab                                   # everything, a few minutes
  dibs lab --strategies naive,by-stock,dibs-embedded
  dibs lab --preset packets --html packets.html
  dibs lab --redis redis://127.0.0.1:6379/9 --databases mariadb --mariadb mysql://root:…@127.0.0.1:3306/mysql
  dibs lab redis                             # what transactions, scripts and persistence give
  dibs lab --list`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			// A mistyped name of the verb below is an argument to cobra: the lab would run for minutes.
			if len(args) > 0 {
				return cli.Usagef("there is no command %q%s; there are dibs lab locks, redis and cache", "lab "+args[0], cli.Meant(args[0], experiments.Groups(), ""))
			}
			if list {
				list := listStrategies()
				return cli.Show(cmd, list, strategyTable(list))
			}
			// A zero that was given must be refused, while a zero field takes the preset's value.
			negate(cmd, map[string]*int{"users": &cfg.Users, "requests": &cfg.Requests}, -1)
			negate(cmd, map[string]*int64{"stock": &cfg.Stock}, -1)
			negate(cmd, map[string]*time.Duration{"time": &cfg.Time}, -time.Second)
			cfg.Progress = cmd.ErrOrStderr()
			return runLab(cmd, cfg, format, page)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.OneOf(&cfg.Preset, lab.Presets()...), "preset", "The `PRESET`, rush, one-user or packets; it sets the defaults below")
	f.StringSliceVar(&cfg.Strategies, "strategies", nil, "Names, separated by commas (default those of the preset; see --list)")
	f.StringSliceVar(&cfg.Databases, "databases", nil, "mariadb, postgres or both (default those of the preset)")
	f.IntVar(&cfg.Users, "users", 0, "How many users send requests (default 2000, 1 or 100000)")
	f.IntVar(&cfg.Requests, "requests", 0, "How many requests they send in all (default 5000, 10000 or 100000)")
	f.IntSliceVar(&cfg.Concurrency, "concurrency", nil, "How many requests are under way at once; several numbers make several runs")
	f.Int64Var(&cfg.Stock, "stock", 0, "How many units there are (default 200, or 100000)")
	f.DurationVar(&cfg.Time, "time", 0, "The longest time for one way (default 5s, or 8s)")
	f.Uint64Var(&cfg.Seed, "seed", 1, "The order of the users")
	f.StringVar(&cfg.MariaDB, "mariadb", "", "Use the server there, mysql://user:password@host:port/database; the lab makes databases of its own on it")
	f.StringVar(&cfg.Postgres, "postgres", "", "Use the server there, postgres://…")
	f.StringVar(&cfg.Redis, "redis", "", "Use the empty database there, redis://host:port/9; the lab empties it")
	f.Var(cli.OneOf(&format, cli.OutputTable, cli.OutputJSON, formatHTML), "format", "The form of the result: table, json or html")
	f.Var(f.Lookup("format").Value, "output", "The same as --format, as other verbs call it")
	f.StringVar(&page, "html", "", "Write the page with charts to this file too")
	f.BoolVar(&list, "list", false, "Show the strategies instead, and what each one teaches")
	cmd.AddCommand(newLabLocksCommand(), newRedisCommand(), newCacheCommand(), newWorkerCommand())
	return cmd
}

// listed is a strategy in the answer of --list, with the names that results have.
type listed struct {
	Strategy string `json:"strategy"`
	Idea     string `json:"idea"`
	// Breaks are the promises that it is known to break: stated by hand, and tested by each run.
	Breaks  []string `json:"breaks"`
	Does    string   `json:"does"`
	Teaches string   `json:"teaches"`
}

// listStrategies lists all strategies.
func listStrategies() []listed {
	var list []listed
	for _, s := range strategies.All() {
		l := listed{s.Name, s.Idea, []string{}, s.Does, s.Teaches}
		for _, f := range s.Breaks {
			l.Breaks = append(l.Breaks, string(f))
		}
		list = append(list, l)
	}
	return list
}

// strategyTable shows strategies, a row for each.
func strategyTable(list []listed) *cli.Table {
	t := cli.NewTable("strategy", "idea", "breaks", "does", "teaches")
	for _, l := range list {
		t.Add(l.Strategy, l.Idea, cli.OrDash(strings.Join(l.Breaks, ", ")), l.Does, l.Teaches)
	}
	return t
}

// cannotRun heads the faults of the flags.
const cannotRun = "the lab cannot run like this:"

// runLab runs the lab and shows what it found. A run that was stopped has a report too, of the
// strategies that were done, and still ends with the error.
func runLab(cmd *cobra.Command, cfg lab.Config, format, page string) error {
	if err := cli.Faults(cannotRun, cfg.Validate()); err != nil {
		return err
	}
	// A page that cannot be written should fail before the minutes that the lab takes.
	var file *os.File
	if page != "" {
		var err error
		if file, err = os.Create(page); err != nil {
			return cli.Usagef("--html: %w", err)
		}
		defer file.Close()
	}
	report, err := lab.Run(cmd.Context(), cfg)
	if errors.Is(err, lab.ErrNoServer) {
		return cli.Usage(err)
	}
	// Nothing was run: the servers did not start.
	if report == nil {
		return err
	}
	// So that a page that is passed on says how to repeat it.
	report.Command = labCommand(cmd)
	// The flag takes these three forms only, so there is always one.
	write := map[string]func(io.Writer) error{cli.OutputTable: report.Table, cli.OutputJSON: report.JSON, formatHTML: report.HTML}[format]
	err = errors.Join(err, write(cmd.OutOrStdout()))
	// The page on disk comes after the output: a terminal shows the result even when the disk is full.
	if file != nil {
		err = errors.Join(err, report.HTML(file), file.Close())
	}
	if err == nil && !report.OK() {
		return fmt.Errorf("the lab found what should not be: %s", strings.Join(report.Surprises, "; "))
	}
	return err
}

// labCommand returns the command line for the report, without the addresses of
// servers, which hold passwords.
func labCommand(cmd *cobra.Command) string {
	parts := []string{"dibs lab"}
	for _, name := range []string{"preset", "strategies", "databases", "users", "requests", "concurrency", "stock", "time", "seed"} {
		// Only what was given: the defaults may change with the preset.
		if f := cmd.Flags().Lookup(name); f.Changed {
			parts = append(parts, "--"+name+" "+strings.Trim(f.Value.String(), "[]"))
		}
	}
	return strings.Join(parts, " ")
}
