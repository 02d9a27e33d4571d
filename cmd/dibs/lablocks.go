package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/lab"
)

func newLabLocksCommand() *cobra.Command {
	var (
		cfg    lab.LocksConfig
		hold   string
		at     []string
		output string
	)
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "Compare locks on Redis, on a majority of Redis servers, on MariaDB and PostgreSQL",
		Long: `Compare distributed locks on servers that are started for it: how often one
caller can take one, how long it takes from one holder to the next in a crowd,
what happens when a holder is killed, and when it is paused and goes on to
write after somebody else has: without the fence, and with it.`,
		Example: "  dibs lab locks\n  dibs lab locks --lockers redis,postgres --contenders 200",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hold != "" {
				return lab.HoldLock(cmd.Context(), hold, at, cfg.Lifetime, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			return labLocks(cmd, cfg, output)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&cfg.Lockers, "lockers", nil, "redis, majority, mariadb, postgres, with commas between (default all)")
	f.IntVar(&cfg.Contenders, "contenders", 50, "How many want one lock at once")
	f.DurationVar(&cfg.Lifetime, "lifetime", time.Second, "How long a lock in Redis outlives its holder")
	f.StringVar(&hold, "hold", "", "Be the process that holds a lock")
	f.StringSliceVar(&at, "at", nil, "The servers of --hold")
	for _, name := range []string{"hold", "at"} {
		f.Lookup(name).Hidden = true
	}
	addOutput(cmd, &output)
	return cmd
}

func labLocks(cmd *cobra.Command, cfg lab.LocksConfig, output string) error {
	if cfg.Contenders == 0 {
		cfg.Contenders = -1
	}
	if err := asError("the lab cannot run like this:", cfg.Validate()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Progress = cmd.ErrOrStderr()
	cfg.Holder = func(kind string, addresses []string) *exec.Cmd {
		child := exec.CommandContext(cmd.Context(), self, "lab", "locks", "--hold", kind, "--at", strings.Join(addresses, ","), "--lifetime", cfg.Lifetime.String())
		child.Stderr = cmd.ErrOrStderr()
		return child
	}
	results, err := lab.Locks(cmd.Context(), cfg)
	if errors.Is(err, lab.ErrNoServer) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	if output == outputJSON {
		return lab.LocksJSON(cmd.OutOrStdout(), results)
	}
	return lab.LocksTable(cmd.OutOrStdout(), results)
}
