package verbs_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

func TestUsage(t *testing.T) {
	clitest.Run(t, nil).Want(t, 0, "Usage:", "campaign", "serve")
	clitest.Run(t, nil, "campaign").Want(t, 0, "Usage:", "apply")
	for args, want := range map[string]string{
		"sevre":                  `dibs: there is no command "sevre"; did you mean serve?`,
		"quux":                   `dibs: there is no command "quux"; dibs --help lists the commands`,
		"serve --lisen x":        "dibs: unknown flag: --lisen; dibs serve --help lists the flags",
		"serve extra":            `dibs: unknown command "extra" for "dibs serve"; usage: dibs serve [flags]`,
		"config chekc":           `did you mean check?`,
		"completion tcsh":        `invalid argument "tcsh"`,
		"serve --config nowhere": "dibs: config file: open nowhere: no such file or directory",
	} {
		r := clitest.Run(t, nil, strings.Fields(args)...)
		r.Want(t, 2, want)
		if strings.Count(r.Err, "\n") != 1 || r.Out != "" {
			t.Errorf("%s: more than a line:\n%s%s", args, r.Out, r.Err)
		}
	}
}
