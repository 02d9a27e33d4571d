package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Require makes flags of a verb required, and returns the verb. Without one of them, or with an empty one, the verb
// fails with a usage error before it begins.
func Require(cmd *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		// Marking fails for a flag that the verb does not have: then none is missing.
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// required calls do with each required flag of a verb, in alphabetical order.
func required(cmd *cobra.Command, do func(*pflag.Flag)) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			do(f)
		}
	})
}

// missingFlags names the required flags that were not given, with an example.
func missingFlags(cmd *cobra.Command) error {
	var missing []string
	required(cmd, func(f *pflag.Flag) {
		if strings.TrimSpace(f.Value.String()) == "" {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) == 0 {
		return nil
	}
	what := missing[0] + " is"
	if last := len(missing) - 1; last > 0 {
		what = strings.Join(missing[:last], ", ") + " and " + missing[last] + " are"
	}
	return Usagef("%s required; for example: %s", what, example(cmd, argumentNames(cmd)))
}

// Count says how many there are of something, `1 unit` or `5,000 units`.
func Count(n int64, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%s %s", Thousands(n), one)
}
