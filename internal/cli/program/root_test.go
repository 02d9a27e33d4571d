package program_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/cli/program"
)

func TestUsage(t *testing.T) {
	clitest.Run(t, nil).Want(t, 0, "Usage:", "campaign", "serve")
	clitest.Run(t, nil, "campaign").Want(t, 0, "Usage:", "apply")
	clitest.Run(t, nil, "campaign", "--help").Want(t, 0, "Usage:", "apply")
	// Whoever asks for help first gets that of the command.
	for _, args := range []string{"campaign apply --help", "--help campaign apply", "-h campaign apply", "campaign -h apply"} {
		clitest.Run(t, nil, strings.Fields(args)...).Want(t, 0, "dibs campaign apply -f FILE")
	}
	clitest.Run(t, nil, "-h", "campaign").Want(t, 0, "dibs campaign", "apply")
	clitest.Run(t, nil, "dev", "--help").Want(t, 0, "(default a temporary one)")
	for args, want := range map[string]string{
		"campaign -h aply":       `dibs: there is no command "campaign aply"; did you mean apply?`,
		"sevre":                  `dibs: there is no command "sevre"; did you mean serve?`,
		"quux":                   `dibs: there is no command "quux"; dibs --help lists the commands`,
		"sevre --help":           `dibs: there is no command "sevre"; did you mean serve?`,
		"-h quux":                `dibs: there is no command "quux"; dibs --help lists the commands`,
		"config chekc x --help":  `dibs: there is no command "config chekc"; did you mean check?`,
		"serve --lisen x":        "dibs: unknown flag: --lisen; did you mean --listen?",
		"serve extra":            `dibs: dibs serve takes no argument, and there is "extra"; for example: dibs serve`,
		"config chekc":           `did you mean check?`,
		"completion tcsh":        `dibs: must be bash, zsh, fish or powershell, not "tcsh"`,
		"serve --config nowhere": "dibs: config file: open nowhere: no such file or directory",
	} {
		r := clitest.Run(t, nil, strings.Fields(args)...)
		r.Want(t, 2, want)
		if strings.Count(r.Err, "\n") != 1 || r.Out != "" {
			t.Errorf("%s: more than a line:\n%s%s", args, r.Out, r.Err)
		}
	}
}

// without are the verbs without --output, by the reason.
var without = map[string][]string{
	"they serve until they are stopped": {"dibs dev", "dibs serve"},
	"their answer is JSON by itself":    {"dibs audit export", "dibs events tail"},
	"their answer is another file":      {"dibs completion", "dibs config docs", "dibs coupon export"},
}

// TestEveryVerbHasOutput: each verb gives its answer as JSON too, but those with a reason.
func TestEveryVerbHasOutput(t *testing.T) {
	var none []string
	for _, verbs := range without {
		none = append(none, verbs...)
	}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && !cmd.Hidden && (cmd.Flags().Lookup("output") != nil) == slices.Contains(none, cmd.CommandPath()) {
			t.Errorf("%s: --output is there %v", cmd.CommandPath(), cmd.Flags().Lookup("output") != nil)
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(program.Root(cli.Build{Version: "v1"}))
}

// TestHelp checks the help of every verb: a short line without a full stop, which the
// list of verbs shows, and longer text that fits a terminal.
func TestHelp(t *testing.T) {
	count := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		count++
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short help is %q", cmd.CommandPath(), cmd.Short)
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 90 {
				t.Errorf("%s: a line of the help is too long: %s", cmd.CommandPath(), line)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: the help is %q", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(program.Root(cli.Build{Version: "v1"}))
	if count < 90 {
		t.Errorf("the program has %d verbs", count)
	}
}
