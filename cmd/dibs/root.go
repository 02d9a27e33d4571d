package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRootCommand assembles the program from its verbs.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "dibs",
		Short: "dibs decides who gets things that run out",
		Long: `dibs decides who gets things that run out: flash sales, coupons and red packets.

Start with "dibs dev": a server on this machine with demo campaigns.`,
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Completion is a verb of ours, documented like the others.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Serve:"},
		&cobra.Group{ID: groupWork, Title: "Campaigns and promises:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"},
	)
	for group, verbs := range map[string][]func() *cobra.Command{
		groupServe:   {newDevCommand, newServeCommand},
		groupWork:    {newProductCommand, newCampaignCommand, newClaimCommand, newCouponCommand, newAudienceCommand, newFollowerCommand, newAnnouncementCommand, newLotteryCommand, newRedPacketCommand, newAccountCommand, newEventsCommand, newRehearseCommand, newLabCommand, newVerifyCommand},
		groupOperate: {newAuditCommand, newConfigCommand, newDoctorCommand, newKeyCommand, newMigrateCommand, newTokenCommand, newUserCommand, newCompletionCommand, newVersionCommand},
	} {
		for _, verb := range verbs {
			cmd := verb()
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(groupOperate)
	family(root)
	strict(root)
	return root
}

// The groups under which the help lists the verbs.
const (
	groupServe   = "serve"
	groupWork    = "work"
	groupOperate = "operate"
)

// family makes a command that only holds others: without one of them it shows
// its help, and a wrong one is told with the nearest names.
func family(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := fmt.Sprintf("%s --help lists what there is", cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("there is no command %q; %s", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "dibs "), hint)
	}
	return cmd
}

// strict makes every fault of a command line a usageError that fits on a line.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			return usagef("%w; %s --help lists the flags", err, cmd.CommandPath())
		}
		return &usageError{err}
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usagef("%w; usage: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}
