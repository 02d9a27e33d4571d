package cli

import (
	"github.com/spf13/cobra"
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
	root.SetHelpCommand(helpVerb())
	strict(Family(root))
	return root
}

// Family makes a command that only holds other verbs, and returns it. Without a
// verb it shows its help; for an unknown one it names the nearest verbs.
func Family(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(verbs...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// strict makes every fault of a command line a usage error on a single line, with
// what helps: the nearest word, or the argument that is missing with an example.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(flagFault)
	completeWords(cmd)
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return argumentFault(cmd, args, err)
			}
			if err := emptyArgument(cmd, args); err != nil {
				return err
			}
			return missingFlags(cmd)
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}
