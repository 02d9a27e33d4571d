package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

// TestMachineFindings examines folders, and leaves nothing in them.
func TestMachineFindings(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data, ledger string
		// want are the findings about the folder, by subject.
		want map[string]string
	}{
		{filepath.Join(dir, "not", "yet"), "", map[string]string{"data folder": "OK: does not exist yet: serve makes it"}},
		{open, "", map[string]string{"data folder": "OK: can be written to", "permissions": "WARN: has mode 0755"}},
		{filepath.Join(file, "below"), "", map[string]string{"data folder": "FAIL: not a directory"}},
		{open, "mysql://u:p@h/d", map[string]string{}},
	} {
		found := map[string]dibs.Finding{}
		for _, f := range machineFindings(&config.Config{Data: c.data, Ledger: c.ledger}) {
			found[f.Subject] = f
			if f.Standing != dibs.StandingOK && f.Remedy == "" {
				t.Errorf("%s: no remedy for %+v", c.data, f)
			}
		}
		for _, subject := range []string{"data folder", "permissions"} {
			f, there := found[subject]
			standing, text, wanted := strings.Cut(c.want[subject], ": ")
			if there != wanted || there && (string(f.Standing) != standing || !strings.Contains(f.Found, text)) {
				t.Errorf("%s: %s is %+v, want %q", c.data, subject, f, c.want[subject])
			}
		}
	}
	left, err := os.ReadDir(open)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
