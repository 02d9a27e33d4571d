package node

import (
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
)

// ServeVerbs returns the verbs that serve until a signal comes.
func ServeVerbs(b cli.Build) []*cobra.Command {
	return []*cobra.Command{newDevCommand(b), newServeCommand(b)}
}

// WorkVerbs returns the verbs about campaigns and claims.
func WorkVerbs() []*cobra.Command {
	return []*cobra.Command{newVerifyCommand()}
}

// OperateVerbs returns the verbs for operating a server.
func OperateVerbs() []*cobra.Command {
	return []*cobra.Command{newConfigCommand(), newDoctorCommand(), newKeyCommand(), newMigrateCommand(), newTokenCommand()}
}
