package fresh_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs/internal/fresh"
)

func TestFoldersAreMadeOnceAndApart(t *testing.T) {
	built := 0
	build := func(dir string) error {
		built++
		return os.WriteFile(filepath.Join(dir, "a"), []byte("new"), 0o600)
	}
	// The test may run again in this process, where a name is built once.
	name := rand.Text()
	one, two := fresh.Folder(t, name, build), fresh.Folder(t, name, build)
	if err := os.WriteFile(filepath.Join(one, "a"), []byte("used"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(two, "a")); err != nil || string(got) != "new" || built != 1 {
		t.Errorf("built %d times, the second has %q, %v", built, got, err)
	}
}

// failing notes that it was failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	panic(errFailed)
}

var errFailed = errors.New("failed")

func TestWhatCannotBeMadeFailsTheTest(t *testing.T) {
	f := &failing{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && !errors.Is(p.(error), errFailed) {
				panic(p)
			}
		}()
		fresh.Folder(f, "nothing", func(string) error { return errors.New("no") })
	}()
	if !f.failed {
		t.Error("a folder was given that could not be made")
	}
}
