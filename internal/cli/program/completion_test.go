package program_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestCompletion checks that bash takes its script, and that each shell has one.
func TestCompletion(t *testing.T) {
	for shell, head := range map[string]string{
		"bash": "# bash completion V2 for dibs", "zsh": "#compdef dibs", "fish": "# fish completion for dibs", "powershell": "# powershell completion for dibs",
	} {
		r := clitest.Run(t, nil, "completion", shell)
		r.Want(t, 0, head)
		if shell != "bash" {
			continue
		}
		check := exec.CommandContext(t.Context(), "bash", "-n")
		check.Stdin = strings.NewReader(r.Out)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	clitest.Run(t, nil, "completion", "tcsh").Want(t, 2, `must be bash, zsh, fish or powershell, not "tcsh"`)
}
