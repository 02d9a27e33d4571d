package trial

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/lab"

	"github.com/dibs-dev/dibs/internal/cli"
)

// holdAt has the servers of --hold: everybody can read a process's arguments, and
// addresses have passwords.
const holdAt = "LAB_LOCKS_AT"

func newLabLocksCommand() *cobra.Command {
	var (
		cfg    lab.LocksConfig
		hold   string
		output string
		named  = map[string]*[]string{}
	)
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "Compare locks on Redis, on a majority of Redis servers, on MariaDB, PostgreSQL and ZooKeeper",
		Long: `Compare distributed locks: how often one caller can take one, how long it takes
from one holder to the next in a crowd, what happens when a holder is killed,
and when it is paused and goes on to write after somebody else has: without the
fence, and with it. Servers that are not named are started for it, when they are
installed.`,
		Example: `  dibs lab locks
  dibs lab locks --lockers redis,postgres --contenders 200
  dibs lab locks --lockers zookeeper --zookeeper zookeeper://127.0.0.1:2181`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hold != "" {
				return lab.HoldLock(cmd.Context(), hold, strings.Split(os.Getenv(holdAt), ","), cfg.Lifetime, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			cfg.Servers = map[string][]string{}
			for kind, list := range named {
				cfg.Servers[kind] = *list
			}
			return labLocks(cmd, cfg, output)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&cfg.Lockers, "lockers", nil, "redis, majority, mariadb, postgres, zookeeper, with commas between (default all)")
	f.IntVar(&cfg.Contenders, "contenders", 50, "How many want one lock at once")
	f.DurationVar(&cfg.Lifetime, "lifetime", time.Second, "How long a lock in Redis or ZooKeeper outlives its holder")
	for _, server := range [][2]string{
		{"redis", "Use the server there, redis://host:port/9"},
		{"majority", "Use the servers there, three or more, with commas between"},
		{"mariadb", "Use the database there, mysql://user:password@host:port/database"},
		{"postgres", "Use the database there, postgres://…"},
		{"zookeeper", "Use the ensemble there, zookeeper://host:port,host:port"},
	} {
		named[server[0]] = f.StringSlice(server[0], nil, server[1])
	}
	f.StringVar(&hold, "hold", "", "Be the process that holds a lock")
	f.Lookup("hold").Hidden = true
	cli.AddOutput(cmd, &output)
	return cmd
}

func labLocks(cmd *cobra.Command, cfg lab.LocksConfig, output string) error {
	if cfg.Contenders == 0 {
		cfg.Contenders = -1
	}
	if err := cli.Faults("the lab cannot run like this:", cfg.Validate()); err != nil {
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
		child.Env = append(os.Environ(), holdAt+"="+strings.Join(addresses, ","))
		return child
	}
	results, err := lab.Locks(cmd.Context(), cfg)
	if errors.Is(err, lab.ErrNoServer) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	if output == cli.OutputJSON {
		return lab.LocksJSON(cmd.OutOrStdout(), results)
	}
	return lab.LocksTable(cmd.OutOrStdout(), results)
}
