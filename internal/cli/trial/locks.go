package trial

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/lab"
	"github.com/dibs-dev/dibs/lab/experiments"
)

// holdAt is the variable with the servers for --hold. They are no arguments: other
// users of the machine can read those, and addresses hold passwords.
const holdAt = "LAB_LOCKS_AT"

// newLabLocksCommand returns the verb that compares locks. With --hold, which is hidden, it is the
// holder that the comparison kills and pauses: it needs a process of its own for that. Its answer has
// no verdict, so it exits with 0 whatever a lock allows.
func newLabLocksCommand() *cobra.Command {
	var cfg lab.LocksConfig
	var hold string
	var mistakes, list bool
	named := map[string]*[]string{}
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "locks",
		Short: "Compare locks on Redis, on a majority of Redis servers, on MariaDB, PostgreSQL and ZooKeeper",
		Long: `Compare distributed locks: how often one caller can take a lock, how long it takes
from one holder to the next in a crowd, what happens when a holder is killed, and what
happens when a holder is paused and then writes although another one has the lock,
without the fence and with it. Servers that are not named are started for the run, when
they are installed; a kind that is not installed is left out, unless --lockers names it.

With --mistakes, show the usual mistakes with a lock in Redis instead, in seconds.
Each is an experiment that shows what goes wrong and what is right.`,
		Example: `  dibs lab locks --mistakes
  dibs lab locks
  dibs lab locks --lockers redis,postgres --contenders 200
  dibs lab locks --lockers zookeeper --zookeeper zookeeper://127.0.0.1:2181`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// This process is the child: its output is the protocol of lab.HoldLock, so nothing else may
			// be written there.
			if hold != "" {
				return lab.HoldLock(cmd.Context(), hold, strings.Split(cli.Getenv(cmd, holdAt), ","), cfg.Lifetime, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			if list {
				return listExperiments(cmd, experiments.Locks)
			}
			if mistakes {
				return runExperiments(cmd, experiments.Config{Group: experiments.Locks, URL: strings.Join(*named["redis"], ",")})
			}
			cfg.Servers = map[string][]string{}
			// An empty list stands for servers that the lab starts.
			for kind, list := range named {
				cfg.Servers[kind] = *list
			}
			return compareLocks(cmd, cfg)
		},
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&cfg.Lockers, "lockers", nil, "redis, majority, mariadb, postgres, zookeeper, separated by commas (default all)")
	f.IntVar(&cfg.Contenders, "contenders", 50, "How many callers want one lock at once")
	f.DurationVar(&cfg.Lifetime, "lifetime", time.Second, "How long a lock in Redis or ZooKeeper outlives its holder")
	for _, server := range [][2]string{
		{"redis", "Use the server there, redis://host:port/9"},
		{"majority", "Use the servers there, three or more, separated by commas"},
		{"mariadb", "Use the database there, mysql://user:password@host:port/database"},
		{"postgres", "Use the database there, postgres://…"},
		{"zookeeper", "Use the ensemble there, zookeeper://host:port,host:port"},
	} {
		named[server[0]] = f.StringSlice(server[0], nil, server[1])
	}
	f.BoolVar(&mistakes, "mistakes", false, "Show the mistakes that are made with locks instead of comparing them; it uses --redis alone")
	f.BoolVar(&list, "list", false, "Show the list of these mistakes instead")
	f.StringVar(&hold, "hold", "", "Be the process that holds a lock")
	// It is for compareLocks alone, and may change with any version.
	f.Lookup("hold").Hidden = true
	return cmd
}

// compareLocks runs the comparison. The holders that it kills and pauses are this program once more,
// with --hold. They get this process's environment, and their errors go to the same error output.
func compareLocks(cmd *cobra.Command, cfg lab.LocksConfig) error {
	// A zero that was given: the default of the flag is 50.
	if cfg.Contenders == 0 {
		cfg.Contenders = -1
	}
	if err := cli.Faults(cannotRun, cfg.Validate()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Progress = cmd.ErrOrStderr()
	cfg.Holder = func(kind string, addresses []string) *exec.Cmd {
		child := exec.CommandContext(cmd.Context(), self, "lab", "locks", "--hold", kind, "--lifetime", cfg.Lifetime.String())
		child.Stderr = cmd.ErrOrStderr()
		child.Env = slices.Concat(cli.Environ(cmd), []string{holdAt + "=" + strings.Join(addresses, ",")})
		return child
	}
	results, err := lab.Locks(cmd.Context(), cfg)
	if errors.Is(err, lab.ErrNoServer) {
		return cli.Usage(err)
	}
	// The measurements are shown whatever came after them: it took minutes.
	if len(results) == 0 {
		return err
	}
	if err != nil {
		defer func() { cmd.PrintErrln("dibs: the comparison is not complete") }()
	}
	return errors.Join(cli.Show(cmd, results, cli.TableFunc(func(out io.Writer) error { return lab.LocksTable(out, results) })), err)
}
