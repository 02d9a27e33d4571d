package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeBench is a program that notes its turn and prints tables with a rate.
func fakeBench(t *testing.T, dir, name, rates string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	script := fmt.Sprintf(`#!/bin/sh
echo "%s $*" >>%s/turns
n=$(grep -c "^%s " %s/turns)
rate=$(echo "%s" | cut -d' ' -f$n)
printf '## grants\n\n| durable grants/s, 7 callers | settled/s meanwhile |\n|---|---|\n| %%s | 50 |\n' "$rate"
printf '\n## settle\n\n| ledger | settled/s | CPU |\n|---|---|---|\n| SQLite | %%s | 2.5 µs |\n| of %s | 1 | – |\n' "$rate"
`, name, dir, name, dir, rates, name)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed is what a function prints.
func printed(t *testing.T, do func() error) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	usual := os.Stdout
	os.Stdout = w
	done := make(chan string)
	go func() {
		text, err := io.ReadAll(r)
		done <- fmt.Sprintf("%s%v", text, err)
	}()
	err = do()
	os.Stdout = usual
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return <-done, err
}

// TestAgainstTakesTurns: the two programs measure one round each, in turns that begin with either, and the ratios are those
// of the same turn: a machine that becomes ten times as fast does not change them.
func TestAgainstTakesTurns(t *testing.T) {
	dir := t.TempDir()
	this, other := fakeBench(t, dir, "this", "110 1050 100"), fakeBench(t, dir, "other", "100 1000 100")
	out, err := printed(t, func() error {
		return compare(t.Context(), &options{rounds: 3, callers: 7, claims: 8, holders: 9, against: "other"}, this, other)
	})
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{
		"| grants: durable grants/s, 7 callers | 110 | 100 | 1.050 | 1.000 | 1.100 |",
		"| settle: SQLite, settled/s | 110 | 100 | 1.050 | 1.000 | 1.100 |",
		"| settle: SQLite, CPU | 2.5 | 2.5 | 1.000 | 1.000 | 1.000 |",
		"lacks it, or it was 0: settle: of this, settled/s; settle: of other, settled/s",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "turns"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for line := range strings.Lines(string(text)) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if order = append(order, name); args != "-only grants,settle -rounds 1 -callers 7 -claims 8 -holders 9" {
			t.Errorf("%s was run with %s", name, args)
		}
	}
	if want := []string{"this", "other", "other", "this", "this", "other"}; !slices.Equal(order, want) {
		t.Errorf("the turns were %v, want %v", order, want)
	}
}

// TestAgainstRefuses: a program that is none, that fails, or that has nothing in common with this one, and no turns.
func TestAgainstRefuses(t *testing.T) {
	dir := t.TempDir()
	failing := filepath.Join(dir, "failing")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(dir, "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	this := fakeBench(t, dir, "this", "1")
	for _, c := range []struct{ other, want string }{{failing, "exit status 3"}, {silent, "no figure in common"}} {
		if out, err := printed(t, func() error { return compare(t.Context(), &options{rounds: 1}, this, c.other) }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q: %s", c.other, err, c.want, out)
		}
	}
	for o, want := range map[options]string{{rounds: 1, against: filepath.Join(dir, "none")}: "-against", {against: this}: "at least one turn"} {
		if err := against(t.Context(), &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
