package signedin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStore keeps a key for each server in a file that only its owner can read, and drops those that have ended.
func TestStore(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	s, err := Open(filepath.Join(t.TempDir(), "settings"))
	if err != nil {
		t.Fatal(err)
	}
	kept := func(url, want string) {
		t.Helper()
		if k, ok, err := s.Find(url); err != nil || ok != (want != "") || k.Secret != want {
			t.Errorf("%s: %+v, %v, %v", url, k, ok, err)
		}
	}
	kept("http://a", "")
	for url, ends := range map[string]time.Duration{"http://Old": time.Minute, "http://A/": time.Hour} {
		if err := s.Keep(url, Key{Secret: "key of " + url, ExpiresAt: now.Add(ends)}, now); err != nil {
			t.Fatal(err)
		}
	}
	kept("http://a", "key of http://A/")
	kept("http://b", "")
	if err := s.Keep("http://b", Key{Secret: "b", ExpiresAt: now.Add(time.Hour)}, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	kept("http://old", "")
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if folder, err := os.Stat(filepath.Dir(s.Path())); err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", folder.Mode(), err)
	}
	if err := s.Forget("http://b/"); err != nil {
		t.Fatal(err)
	}
	kept("http://b", "")
	if left, err := os.ReadDir(filepath.Dir(s.Path())); err != nil || len(left) != 1 {
		t.Errorf("files were left: %v, %v", left, err)
	}
}

// TestFilesThatCannotBeUsed: a file that others can read, or that is none, is an error and not an empty file.
func TestFilesThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		text, says string
		mode       os.FileMode
	}{
		"readable": {"{}", "others can read", 0o640}, "damaged": {"{", "cannot be read", 0o600}, "null": {"null", "cannot be read", 0o600},
		"large": {strings.Repeat(" ", maxFile+1), "too large", 0o600},
	} {
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(s.Path()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Path(), []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Find("http://a"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: find: %v", name, err)
		}
		if err := s.Keep("http://a", Key{}, time.Now()); err == nil {
			t.Errorf("%s: it was written over", name)
		}
	}
}
