package server

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// A file that is being written is not read before it stands still: half a secret
// may be long enough to be taken for one, and every token would be worth nothing.
func TestFilesAreReadWhenTheyStandStill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var loaded []string
	w := &watchedFiles{name: "secrets", paths: []string{path}, load: func() error {
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
	s := &server{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	wants := func(what string, want ...string) {
		t.Helper()
		if len(loaded) != len(want) || len(want) > 0 && loaded[len(loaded)-1] != want[len(want)-1] {
			t.Errorf("%s: read were %q, want %q", what, loaded, want)
		}
	}
	write("one")
	s.reload(w, true)
	wants("at start", "one")
	write("tw")
	s.reload(w, false)
	wants("half of it", "one")
	write("two")
	s.reload(w, false)
	wants("all of it, at the first look", "one")
	s.reload(w, false)
	wants("all of it", "one", "two")
	s.reload(w, false)
	wants("the same", "one", "two")
	write("three")
	s.reload(w, true)
	wants("who says so", "one", "two", "three")
	write("bad")
	s.reload(w, false)
	s.reload(w, false)
	write("three")
	s.reload(w, false)
	wants("what cannot be used, and back", "one", "two", "three")
}
