package ci_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) *\{([^\n]*(?:\n\t[^\n]*|\n$)*)`)
	campaign = regexp.MustCompile(`(?m)^([a-z-]+)\|(\./[a-z/]+)\|(.+)\|[^|]+$`)
)

// TestSoakRunsEveryCampaign: each campaign of soak.sh names tests that are there,
// and each test that repeats itself for longer when it is told to is in one.
func TestSoakRunsEveryCampaign(t *testing.T) {
	script, err := os.ReadFile("soak.sh")
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]*regexp.Regexp{}
	campaigns := campaign.FindAllStringSubmatch(string(script), -1)
	if len(campaigns) < 10 {
		t.Fatalf("%d campaigns in soak.sh", len(campaigns))
	}
	for _, c := range campaigns {
		pattern, err := regexp.Compile(c[3])
		if err != nil {
			t.Fatal(err)
		}
		runs[c[2]] = append(runs[c[2]], pattern)
	}
	for dir, patterns := range runs {
		used := make([]bool, len(patterns))
		for name, body := range testsIn(t, filepath.Join("../..", dir)) {
			covered := false
			for i, p := range patterns {
				if p.MatchString(name) {
					used[i], covered = true, true
				}
			}
			if !covered && (strings.Contains(body, "rounds(t") || strings.Contains(body, `"SOAK"`)) {
				t.Errorf("%s in %s has rounds, and no campaign of soak.sh runs it", name, dir)
			}
		}
		for i, p := range patterns {
			if !used[i] {
				t.Errorf("a campaign of soak.sh names %s, which is no test in %s", p, dir)
			}
		}
	}
}

// testsIn returns the tests of a folder and what is in each.
func testsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = found[2]
		}
	}
	return tests
}
