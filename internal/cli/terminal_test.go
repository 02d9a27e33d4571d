package cli

import (
	"bytes"
	"os"
	"testing"
)

// TestPaint: text is as it was wherever no terminal shows it.
func TestPaint(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) || IsTerminal(&bytes.Buffer{}) {
		t.Error("a file is taken for a terminal")
	}
	if p := PaintFor(null); p.Green("x") != "x" {
		t.Errorf("%q", p.Green("x"))
	}
	on := Paint{on: true}
	if got := on.Bold("a") + on.Dim("b") + on.Green("c"); got != "\x1b[1ma\x1b[0m\x1b[2mb\x1b[0m\x1b[32mc\x1b[0m" {
		t.Errorf("%q", got)
	}
}
