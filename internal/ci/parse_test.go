package ci_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestScriptsParse has bash read every script to its end: one quote too many in a
// line that runs at night only is seen by day.
func TestScriptsParse(t *testing.T) {
	scripts, err := filepath.Glob("*.sh")
	if err != nil || len(scripts) < 5 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}
