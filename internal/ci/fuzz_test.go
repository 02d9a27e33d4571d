package ci_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// TestEveryTargetKeepsItsCorpus: inputs that a fuzz target has found are kept beside it, so that
// every run of the tests tries them: `make fuzz KEEP=1` fills an empty folder.
func TestEveryTargetKeepsItsCorpus(t *testing.T) {
	targets := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			targets++
			kept, err := filepath.Glob(filepath.Join(filepath.Dir(path), "testdata", "fuzz", found[1], "*"))
			if err != nil {
				return err
			}
			if len(kept) == 0 {
				t.Errorf("%s of %s keeps no inputs", found[1], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if targets < 40 {
		t.Errorf("only %d fuzz targets were found", targets)
	}
}
