package trial

import "github.com/spf13/cobra"

// Verbs returns the verbs of this package.
func Verbs() []*cobra.Command {
	return []*cobra.Command{newRehearseCommand(), newLabCommand()}
}
