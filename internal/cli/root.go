package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Group is a group of verbs with its title in the help.
type Group struct {
	Title string
	Verbs []*cobra.Command
}

// Root returns the command dibs with the verbs of the groups. The last group also
// has the verb help.
func Root(b Build, groups ...Group) *cobra.Command {
	root := &cobra.Command{
		Use:   "dibs",
		Short: "dibs decides who gets things that run out",
		Long: `dibs decides who gets things that run out: flash sales, coupons and red packets.

Start with "dibs dev": a server on this machine with demo campaigns.`,
		Version:       b.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// CompletionVerb takes its place, documented like the other verbs.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, verb := range g.Verbs {
			verb.GroupID = g.Title
			root.AddCommand(verb)
		}
		root.SetHelpCommandGroupID(g.Title)
	}
	strict(Family(root))
	return root
}

// Family makes a command that only holds other verbs, and returns it. Without a
// verb it shows its help; for an unknown one it names the nearest verbs.
func Family(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(verbs...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := fmt.Sprintf("%s --help lists the commands", cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return Usagef("there is no command %q; %s", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "dibs "), hint)
	}
	return cmd
}

// strict makes every fault of a command line a usage error on a single line, with
// the command that helps.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			return Usagef("%w; %s --help lists the flags", err, cmd.CommandPath())
		}
		return Usage(err)
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return Usagef("%w; usage: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}
