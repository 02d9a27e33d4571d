package node

import (
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
)

// ServeVerbs returns the verbs that serve until a signal comes.
func ServeVerbs(b cli.Build) []*cobra.Command {
	return []*cobra.Command{newDevCommand(b), newServeCommand(b)}
}

// WorkVerbs returns the verbs about campaigns and claims that open a node themselves.
func WorkVerbs() []*cobra.Command {
	return []*cobra.Command{newVerifyCommand()}
}

// OperateVerbs returns the verbs for operating a server. Verbs that ask a server are given for
// the families that have some: those of dibs token.
func OperateVerbs(token ...*cobra.Command) []*cobra.Command {
	tokens := newTokenCommand()
	tokens.AddCommand(token...)
	return []*cobra.Command{newConfigCommand(), newDoctorCommand(), newKeyCommand(), newLedgerCommand(), newMigrateCommand(), tokens}
}
