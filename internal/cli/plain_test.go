package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
)

// forged is a title that would clear the screen, write a row of its own and hide what
// follows.
const forged = "Phone\x1b[2J\n2026-11-22  boss  admin\tdone\u009b\u202e\x7f"

// A table, a message and JSON show characters that a terminal would obey by their
// escapes, and nothing is lost.
func TestTerminalsObeyNothing(t *testing.T) {
	clean := func(what, shown string, lines int) {
		t.Helper()
		if strings.ContainsFunc(strings.ReplaceAll(shown, "\n", ""), dibs.IsControl) {
			t.Errorf("%s shows control characters: %q", what, shown)
		}
		if n := strings.Count(shown, "\n"); n != lines {
			t.Errorf("%s has %d lines, want %d: %q", what, n, lines, shown)
		}
	}
	var out bytes.Buffer
	table := NewTable("TITLE", "STATE")
	table.Add(forged, "draft")
	table.Field("title", forged)
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	clean("a table", out.String(), 3)
	if want := `Phone\x1b[2J\n2026-11-22  boss  admin\tdone\u009b\u202e\x7f`; !strings.Contains(out.String(), want) {
		t.Errorf("a table shows %q, want %s", out.String(), want)
	}
	clean("a message", Message(errors.New("refused: "+forged)), 0)

	cmd := &cobra.Command{}
	out.Reset()
	cmd.SetOut(&out)
	if err := JSONLines(cmd).Encode(map[string]string{"title": forged}); err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	clean("JSON", out.String(), 1)
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["title"] != forged {
		t.Errorf("JSON lost something: %q, %v", back["title"], err)
	}
}
