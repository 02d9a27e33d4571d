package server

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestReloadWaitsForAWholeFile changes a file in two steps, as a program does that
// writes it: half of a secret may be long enough to pass for one.
func TestReloadWaitsForAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var loaded []string
	w := &fileSet{name: "secrets", paths: []string{path}, load: func() error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if string(raw) == "bad" {
			return errors.New("no secret is in it")
		}
		loaded = append(loaded, string(raw))
		return nil
	}}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	wants := func(what string, want ...string) {
		t.Helper()
		if len(loaded) != len(want) || len(want) > 0 && loaded[len(loaded)-1] != want[len(want)-1] {
			t.Errorf("%s: read were %q, want %q", what, loaded, want)
		}
	}
	write("one")
	w.reload(log, true)
	wants("at start", "one")
	write("tw")
	w.reload(log, false)
	wants("half of it", "one")
	write("two")
	w.reload(log, false)
	wants("all of it, at the first look", "one")
	w.reload(log, false)
	wants("all of it", "one", "two")
	w.reload(log, false)
	wants("the same", "one", "two")
	write("three")
	w.reload(log, true)
	wants("when SIGHUP says that it is whole", "one", "two", "three")
	write("bad")
	w.reload(log, false)
	w.reload(log, false)
	write("three")
	w.reload(log, false)
	wants("what cannot be used, and back", "one", "two", "three")
}
