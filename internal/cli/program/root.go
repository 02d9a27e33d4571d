package program

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/node"
	"github.com/dibs-dev/dibs/internal/cli/remote"
	"github.com/dibs-dev/dibs/internal/cli/trial"
)

// Root returns the program: the command dibs with all its verbs.
func Root(b cli.Build) *cobra.Command {
	return cli.Root(b,
		cli.Group{Title: "Serve:", Verbs: node.ServeVerbs(b)},
		cli.Group{Title: "Campaigns and promises:", Verbs: remote.Completed(slices.Concat(remote.WorkVerbs(), trial.Verbs(b), node.WorkVerbs()))},
		cli.Group{Title: "Operate:", Verbs: slices.Concat(
			remote.Completed(slices.Concat(remote.OperateVerbs(), node.OperateVerbs(remote.TokenVerbs()...))), []*cobra.Command{cli.CompletionVerb(), cli.VersionVerb(b)},
		)},
	)
}
