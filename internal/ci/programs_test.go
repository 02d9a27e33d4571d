package ci_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// started finds a program that Go code starts or looks for by its name, and its
// usual path, if there is one.
var started = regexp.MustCompile(`(?:exec\.Command|exec\.CommandContext|exec\.LookPath|\bfind)\((?:[\w.]+\(\), |ctx, )?"([^"]+)"(?:, "(/[^"]+)")?`)

// everywhere is what a minimal Debian has, and Go.
var everywhere = []string{"sh", "bash", "go", "sha256sum", "dpkg", "dpkg-deb"}

// programs returns each program that a Go file of the repository starts by name,
// with the files that do.
func programs(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || path == "internal/ci/programs_test.go" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			return err
		}
		for _, m := range started.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], ".") {
				out[m[1]] = append(out[m[1]], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNeedKnowsEveryProgram: what Go code starts is probed by need.sh, so that it
// is there on a machine with nothing but Go.
func TestNeedKnowsEveryProgram(t *testing.T) {
	known := slices.Clone(everywhere)
	seen := map[string]bool{}
	for _, n := range needs(t) {
		if seen[n.pkg] {
			t.Errorf("need.sh has two lines for %s", n.pkg)
		}
		seen[n.pkg] = true
		for _, probe := range n.probes {
			known = append(known, filepath.Base(probe))
		}
	}
	all := programs(t)
	if len(all) < 8 {
		t.Errorf("only these programs were found: %v", all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, filepath.Base(name)) {
			t.Errorf("%s is started by %v, and need.sh has no probe of it", name, all[name])
		}
	}
}
