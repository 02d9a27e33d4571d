// Package fresh gives tests folders with files that take long to make: they are
// made once for all tests of a process, and copied.
package fresh

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// template is what was made once: the contents by file name, or why not.
type template struct {
	once  sync.Once
	files map[string][]byte
	err   error
}

var templates sync.Map // string -> *template

var errNotBuilt = errors.New("fresh: they were not made to the end")

// Folder returns a folder of the test's own with the files that build has made in
// another folder, for the first test that asked for this name. build closes what
// it opens. Safe for concurrent use.
func Folder(t testing.TB, name string, build func(dir string) error) string {
	t.Helper()
	found, _ := templates.LoadOrStore(name, &template{})
	made := found.(*template)
	made.once.Do(func() {
		// It stays when build ends the test.
		made.err = errNotBuilt
		made.files, made.err = record(build)
	})
	if made.err != nil {
		t.Fatalf("making the files of a fresh %s: %v", name, made.err)
	}
	dir := t.TempDir()
	for file, content := range made.files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// record reads the files that build makes.
func record(build func(dir string) error) (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "dibs-fresh-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if left := os.RemoveAll(dir); err == nil {
			err = left
		}
	}()
	if err := build(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}
