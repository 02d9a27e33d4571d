package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scratch runs scratch.sh with a memory of so many KiB free, and TMPDIR.
func scratch(t *testing.T, free string) (chosen, usual string) {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	for _, name := range []string{"bash", "awk", "tail", "mktemp", "chmod", "rm", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.has("df", "printf 'Avail\\n"+free+"\\n'")
	cmd := exec.Command(filepath.Join(m.dir, "bash"), "scratch.sh")
	cmd.Env = []string{"PATH=" + m.dir, "TMPDIR=" + m.dir}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), m.dir
}

// Where memory is short, or cannot be looked at, tests write where they always did;
// nothing is left behind.
func TestScratch(t *testing.T) {
	for _, free := range []string{"7999999", "0", ""} {
		if chosen, usual := scratch(t, free); chosen != usual {
			t.Errorf("with %q KiB free it is %s", free, chosen)
		}
	}
	if chosen, usual := scratch(t, "8000000"); chosen != usual && chosen != "/dev/shm" {
		t.Errorf("with enough it is %s", chosen)
	}
	left, err := filepath.Glob("/dev/shm/dibs-probe-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
