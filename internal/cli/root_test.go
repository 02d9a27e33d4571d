package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestRoot checks the help, and what is said of command lines with a fault: a single
// line that helps.
func TestRoot(t *testing.T) {
	verb := func() *cobra.Command {
		run := func(*cobra.Command, []string) error { return nil }
		one := &cobra.Command{Use: "publish ID", Short: "Publish it", Args: cobra.ExactArgs(1), RunE: run}
		one.Flags().Int("limit", 0, "At most `N`")
		return Family(&cobra.Command{Use: "campaign", Short: "Campaigns"}, one)
	}
	for args, want := range map[string]string{
		"campaign pubilsh x":            `there is no command "campaign pubilsh"; did you mean publish?`,
		"campaign quux":                 `there is no command "campaign quux"; dibs campaign --help lists the commands`,
		"campaign publish":              "ID is missing; for example: dibs campaign publish phone-noon",
		"campaign publish x y":          `"y" is one argument too many; for example: dibs campaign publish phone-noon`,
		"campaign publish x --lmit 1":   "unknown flag: --lmit; did you mean --limit?",
		"campaign publish x --wrong 1":  "unknown flag: --wrong; dibs campaign publish --help lists the flags",
		"campaign publish x --limit ab": `--limit must be a whole number, not "ab"`,
		"campaign publish x --limit":    "--limit needs a value",
		"campaign pubilsh --id x":       `there is no command "campaign pubilsh"; did you mean publish?`,
		"campain publish":               `there is no command "campain"; did you mean campaign?`,
		"help campain":                  `there is no command "campain"; did you mean campaign?`,
		"help campaign pub":             `there is no command "campaign pub"; did you mean publish?`,
	} {
		if out, errOut, code := invoke(t, verb(), nil, strings.Fields(args)...); out != "" || errOut != "dibs: "+want+"\n" || code != ExitUsage {
			t.Errorf("%s: %q, %q, %d", args, out, errOut, code)
		}
	}
	for args, parts := range map[string][]string{"": {"Verbs:", "campaign", "help"}, "help campaign publish": {"Publish it", "--limit"}, "help": {"Verbs:"}, "campaign": {"publish", "Publish it"}} {
		out, errOut, code := invoke(t, verb(), nil, strings.Fields(args)...)
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("dibs %s lacks %q:\n%s", args, part, out)
			}
		}
		if errOut != "" || code != ExitOK {
			t.Errorf("dibs %s: %q, %d", args, errOut, code)
		}
	}
}
