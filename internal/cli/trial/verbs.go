package trial

import (
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
)

// Verbs returns the verbs of this package; dibs --help sorts them.
func Verbs(b cli.Build) []*cobra.Command {
	return []*cobra.Command{newRehearseCommand(), newPlanCommand(b), newLabCommand()}
}
