package dibs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReasonsPage keeps the table of docs/REASONS.md equal to the registry, in
// its order.
func TestReasonsPage(t *testing.T) {
	var rows []string
	for line := range strings.Lines(read(t, "docs/REASONS.md")) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	for i := range max(len(rows), dibs.ReasonCount) {
		want := "nothing"
		if i < dibs.ReasonCount {
			info, retryable := dibs.Reason(i).Info(), "no"
			if info.Retryable {
				retryable = "yes"
			}
			want = fmt.Sprintf("| `%s` | %d | %d | %s | %s | %s |", info.Word, info.Status, info.Code, retryable, info.Title.EN, info.Title.ZH)
		}
		if i >= len(rows) || rows[i] != want {
			t.Fatalf("row %d of docs/REASONS.md is\n%s\nwant\n%s", i+1, slices.Concat(rows, []string{"nothing"})[min(i, len(rows))], want)
		}
	}
}

// TestReasonsBodies holds every body of docs/REASONS.md against the registry:
// no unknown member, and what belongs to the reason is there.
func TestReasonsBodies(t *testing.T) {
	shown := map[dibs.Reason]bool{}
	for _, body := range fenced(read(t, "docs/REASONS.md"), "json") {
		if strings.HasPrefix(body, `{"id"`) {
			var claim api.ClaimView
			strictly(t, body, &claim)
			shown[dibs.Granted] = true
			continue
		}
		var p api.Problem
		strictly(t, body, &p)
		at := slices.IndexFunc(all(), func(r dibs.Reason) bool { return r.String() == p.Reason && r.Info().Status == p.Status })
		if at < 0 {
			t.Errorf("no reason %s has the status %d", p.Reason, p.Status)
			continue
		}
		r := dibs.Reason(at)
		shown[r] = true
		info := r.Info()
		if p.Code != info.Code || p.Retryable != info.Retryable || p.Title != info.Title.EN || p.Type != "urn:dibs:problem:"+info.Word {
			t.Errorf("the body of %s differs from the registry: %s", r, body)
		}
		for member, is := range map[string]bool{
			"starts_at": (p.StartsAt != nil) == (r == dibs.NotStarted), "ends_at": (p.EndsAt != nil) == (r == dibs.Ended),
			"remaining": (p.Remaining != nil) == (r == dibs.SoldOut), "claim_ids": (p.ClaimIDs != nil) == (r == dibs.LimitReached),
			"effect": (p.Effect != "") == (info.Status == 503), "detail": p.Detail != "", "request_id": p.RequestID != "",
		} {
			if !is {
				t.Errorf("%s of the body of %s: %s", member, r, body)
			}
		}
	}
	for _, r := range all() {
		if !shown[r] {
			t.Errorf("%s (%d): no body is shown", r, r.Info().Status)
		}
	}
}

func all() []dibs.Reason {
	rs := make([]dibs.Reason, dibs.ReasonCount)
	for i := range rs {
		rs[i] = dibs.Reason(i)
	}
	return rs
}

func strictly(t *testing.T, body string, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%v in %s", err, body)
	}
}

// fenced returns the code blocks of a page; lang "" returns all of them.
func fenced(page, lang string) []string {
	var blocks []string
	for i, part := range strings.Split("\n"+page, "\n```") {
		name, body, _ := strings.Cut(part, "\n")
		if i%2 == 1 && (lang == "" || name == lang) {
			blocks = append(blocks, body)
		}
	}
	return blocks
}

// testName is how the pages name a test, with or without a subtest.
var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)(?:/([^`]+))?`")

// TestPagesNameTestsThatExist looks for every test that a page names as a proof.
func TestPagesNameTestsThatExist(t *testing.T) {
	var code strings.Builder
	walk(t, func(path string) { code.WriteString(read(t, path)) })
	for _, page := range allPages(t) {
		found := testName.FindAllStringSubmatch(read(t, page), -1)
		if len(found) < 40 && filepath.Base(page) == "GUARANTEES.md" {
			t.Errorf("%s names only %d tests", page, len(found))
		}
		for _, m := range found {
			if !strings.Contains(code.String(), "\nfunc "+m[1]+"(") {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
			if m[2] != "" && !strings.Contains(code.String(), `{"`+m[2]+`", `) {
				t.Errorf("%s: %s has no check %q", page, m[1], m[2])
			}
		}
	}
}

// allPages returns the names of the pages in both languages.
func allPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/zh/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is called %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// TestPagesNameTargetsThatExist looks for every make target that a page names,
// and for every target in CONTRIBUTING.md, but those that others call.
func TestPagesNameTargetsThatExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	named := map[string]bool{"clean": true, "vuln": true}
	for _, page := range allPages(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(read(t, page), -1) {
			if !targets[m[1]] {
				t.Errorf("%s names the target %s, which the Makefile does not have", page, m[1])
			}
			named[m[1]] = named[m[1]] || page == "CONTRIBUTING.md"
		}
	}
	for target := range targets {
		if !named[target] {
			t.Errorf("CONTRIBUTING.md does not name make %s", target)
		}
	}
}

// walk calls f for every Go file of the repository.
func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".go" {
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDependenciesAreListed keeps the table in docs/ARCHITECTURE.md equal to
// what the code imports.
func TestDependenciesAreListed(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "\n## Dependencies\n")
	used := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				used[m[1]] = false
			}
		}
	}
	walk(t, func(path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			name := strings.Trim(imp.Path.Value, `"`)
			first, _, _ := strings.Cut(name, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(name, "github.com/dibs-dev/dibs") {
				continue
			}
			listed := false
			for module := range used {
				if name == module || strings.HasPrefix(name, module+"/") {
					used[module], listed = true, true
				}
			}
			if !listed {
				t.Errorf("%s imports %s, which the table does not have", path, name)
			}
		}
	})
	for module, is := range used {
		if !is {
			t.Errorf("the table has %s, which nothing imports", module)
		}
	}
}

// TestReadmesShowTheSame checks that both languages show the same commands and
// code, and that the Go code is the lines of Example, which a test runs.
func TestReadmesShowTheSame(t *testing.T) {
	en, zh := read(t, "README.md"), read(t, "README.zh-CN.md")
	if a, b := fenced(en, ""), fenced(zh, ""); !slices.Equal(a, b) {
		t.Error("the code blocks of README.md and README.zh-CN.md differ")
	}
	example := strings.ReplaceAll(read(t, "node/example_test.go"), "\n\t", "\n")
	shown := fenced(en, "go")
	if len(shown) == 0 {
		t.Fatal("README.md shows no Go code")
	}
	for _, code := range shown {
		if !strings.Contains(example, code) {
			t.Errorf("node/example_test.go does not have\n%s", code)
		}
	}
}
