package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLimits is the check itself: this repository is within the limits, but for
// what stands in ceilings.
func TestLimits(t *testing.T) {
	h, err := load(t.Context(), "../..", "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range h.check(ceilings, standingImports) {
		t.Error(fault)
	}
	for _, file := range h.lostWays() {
		t.Errorf("%s is gone: name the file that has this way now in ways", file)
	}
	for _, room := range h.unlisted(layers) {
		t.Logf("%s has no place in the layers", room)
	}
}

// built is a small module: its files by name.
type built map[string]string

// file adds a Go file with comments enough, and a test beside it.
func (b built) file(name, body string) built {
	folder := filepath.Base(filepath.Dir(name))
	if folder == "." {
		folder = "dibs"
	}
	b[name] = "package " + folder + "\n\n// One.\n// Two.\n// Three.\n" + body
	b[strings.TrimSuffix(name, ".go")+"_test.go"] = "package " + folder + "\n"
	return b
}

// files adds n files to a folder, each with the body that makes gives.
func (b built) files(folder string, n int, makes func(i int) string) built {
	for i := range n {
		b.file(fmt.Sprintf("%s/f%d.go", folder, i), makes(i))
	}
	return b
}

// lines repeats what a line's number gives, beside one comment each.
func lines(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "// Line.\n"+format+"\n", i)
	}
	return out.String()
}

// house writes the module and reads it.
func (b built) house(t *testing.T) *house {
	t.Helper()
	h, err := load(t.Context(), b.write(t), "./...")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// write puts the module into a folder of its own, with a domain, a leaf, a
// service, an adapter and a library beside it.
func (b built) write(t *testing.T) string {
	t.Helper()
	b["go.mod"] = "module example.com/dibs\n\ngo 1.26.0\n\nrequire example.org/library v0.0.0\n\nreplace example.org/library => ./library\n"
	b["library/go.mod"] = "module example.org/library\n\ngo 1.26.0\n"
	b["library/library.go"] = "package library\n"
	b.file("dibs.go", "import _ \"strings\"\n").file("internal/leaf/leaf.go", "import _ \"example.org/library\"\n")
	b.file("orders/o.go", "import _ \"example.com/dibs\"\n").file("gate/limit/l.go", "import _ \"example.com/dibs/orders\"\n")
	dir := t.TempDir()
	for name, body := range b {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func nothing(int) string { return "" }

// ring makes each of n files use a function of the next.
func ring(n int) func(i int) string {
	return func(i int) string { return fmt.Sprintf("func f%d() { f%d() }\n", i, (i+1)%n) }
}

// uncommented has n lines without a comment of their own, beside the 12 comment
// lines of 20 that every module here has.
func uncommented(n int) func() built {
	return func() built { return built{"lab/l.go": "package lab\n" + strings.Repeat("var _ = 1 // One.\n", n)} }
}

// untested has n files without a test, beside the 4 with one that every module
// here has.
func untested(n int) func() built {
	return func() built {
		b := built{}
		for i := range n {
			b[fmt.Sprintf("lab/t%d.go", i)] = "// Package lab is.\npackage lab\n"
		}
		return b
	}
}

// faults are modules that break one rule each, or none, and what must be said.
var faults = []struct {
	name  string
	built func() built
	want  []string
}{
	{"in order", func() built { return built{} }, nil},
	{"at every limit", atEveryLimit, nil},
	{"files of the root", func() built { return built{}.files(".", rootFiles, nothing) }, []string{".: 31 files: the limit is 30"}},
	{"files", func() built { return built{}.files("lab", 41, nothing) }, []string{"lab: 41 files: the limit is 40"}},
	{"names of the root", func() built { return built{}.file("n.go", lines(261, "const N%d = 1")) }, []string{".: 261 exported names: the limit is 260"}},
	{"names", func() built { return built{}.file("lab/n.go", lines(261, "type N%d int")) }, []string{"lab: 261 exported names: the limit is 260"}},
	{"methods, exported or not, of value or pointer", func() built {
		return built{}.file("lab/m.go", "type t struct{}\n"+lines(30, "func (t) m%d() {}")+lines(31, "func (*t) M%d() {}"))
	}, []string{"lab: 61 methods of a type (t): the limit is 60"}},
	{"an interface with those that it embeds", func() built {
		return built{}.file("lab/i.go", "type a interface{\n"+lines(20, "A%d()")+"}\n\ntype b interface{\na\n"+lines(6, "b%d()")+"}\n")
	}, []string{"lab: 26 methods of an interface (b): the limit is 25"}},
	{"a circle of files", func() built { return built{}.files("lab", 16, ring(16)) }, []string{"lab: 16 files that all need each other: the limit is 15"}},
	{"a file", func() built { return built{}.file("lab/l.go", strings.Repeat("// Line.\n", 596)) }, []string{"lab: 601 lines of a file (l.go): the limit is 600"}},
	{"a file for another platform", func() built {
		return built{}.file("lab/l.go", "").file("lab/l_plan9.go", strings.Repeat("// Line.\n", 596))
	}, []string{"lab: 601 lines of a file (l_plan9.go): the limit is 600"}},
	{"a function", func() built {
		return built{}.file("lab/l.go", "func f() {\n"+strings.Repeat("// Line.\n", 69)+"}\n")
	}, []string{"lab: 71 lines of a function (l.go): the limit is 70"}},
	{"a literal outside of functions", func() built {
		return built{}.file("lab/l.go", "var f = func() {\n"+strings.Repeat("// Line.\n", 69)+"}\n")
	}, []string{"lab: 71 lines of a function (l.go): the limit is 70"}},
	{"the way of a claim", func() built {
		return built{}.file("claims/claim.go", strings.Repeat("// Line.\n", 296)).file("claims/other.go", strings.Repeat("// Line.\n", 296))
	}, []string{"claims/claim.go: 301 lines of a way: the limit is 300"}},
	{"comments", uncommented(55), []string{"all packages: 15 percent of comment lines: the limit is 16"}},
	{"just comments enough", uncommented(54), nil},
	{"tests", untested(5), []string{"all packages: 44 percent of files with a test beside them: the limit is 50"}},
	{"just tests enough", untested(4), nil},
	{"does not compile", func() built { return built{}.file("lab/l.go", "var a, b int = true, true\n") }, []string{"lab: does not compile: "}},
	{"generated files do not count", func() built {
		return built{"lab/l.go": "// Code generated by a tool. DO NOT EDIT.\n\npackage lab\n" + strings.Repeat("var _ = 1\n", 700)}.file("lab/a.go", "")
	}, nil},
}

// imports are files that import something, and what must be said.
var imports = []struct{ file, path, want string }{
	{"a.go", "example.org/library", ". imports example.org/library: domain imports the standard library only"},
	{"a.go", "example.com/dibs/internal/leaf", ". imports internal/leaf: domain imports the standard library only"},
	{"internal/leaf/a.go", "example.com/dibs", "internal/leaf imports .: leaves stands below domain"},
	{"internal/leaf/a_test.go", "example.com/dibs", "internal/leaf imports .: leaves stands below domain"},
	{"internal/other/a.go", "example.com/dibs/internal/leaf", ""},
	{"internal/simulation/a.go", "example.com/dibs/gate/limit", ""},
	{"events/a.go", "example.com/dibs/orders", "events imports orders: events stands below orders"},
	{"funds/a.go", "example.com/dibs/orders", ""},
	{"funds/a.go", "example.com/dibs/gate/limit", "funds imports gate/limit: funds stands below adapters"},
	{"lock/a.go", "example.com/dibs/gate/limit", "lock imports gate/limit: adapters never import each other"},
	{"lock/a_plan9.go", "example.com/dibs/gate/limit", "lock imports gate/limit: adapters never import each other"},
	{"lock/inner/a.go", "example.com/dibs/gate/limit", "lock/inner imports gate/limit: adapters never import each other"},
	{"lock/a_test.go", "example.com/dibs/gate/limit", ""},
	{"gate/limit/inner/a.go", "example.com/dibs/gate/limit", ""},
	{"httpapi/a.go", "example.com/dibs/gate/limit", ""},
	{"web/a.go", "example.com/dibs/gate/limit", ""},
	{"lab/a.go", "C", "lab imports C: the binary is static, without cgo"},
	{"unknown/a.go", "example.com/dibs/gate/limit", ""},
	{"unknown/a.go", "C", "unknown imports C: the binary is static, without cgo"},
}

// atEveryLimit is a module with a package whose values are exactly the limits.
func atEveryLimit() built {
	b := built{}.files(".", rootFiles-1, nothing).files("lab", 36, ring(15))
	for i := 15; i < 36; i++ {
		b.file(fmt.Sprintf("lab/f%d.go", i), "")
	}
	b.file("lab/i.go", "type i interface{\n"+lines(25, "I%d()")+"}\n")
	b.file("lab/n.go", lines(260, "const N%d = 1"))
	b.file("lab/m.go", "type t struct{}\n"+lines(60, "func (t) m%d() {}"))
	b.file("lab/l.go", "func full() {\n"+strings.Repeat("// Line.\n", 68)+"}\n"+strings.Repeat("// Line.\n", 525))
	b.file("claims/claim.go", strings.Repeat("// Line.\n", 295))
	return b
}

// TestLostWaysAreFound has one of the files of the ways, and not the others.
func TestLostWaysAreFound(t *testing.T) {
	h := built{}.file("live/settle.go", "").house(t)
	if got := h.lostWays(); !slices.Equal(got, []string{"httpapi/claim.go", "claims/claim.go"}) {
		t.Errorf("lost are %q, want the way of a claim alone", got)
	}
}

func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			expect(t, f.built().house(t).check(nil, nil), f.want...)
		})
	}
}

// expect demands every wanted fault, by prefix, and no other.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i, g := range got {
		if i >= len(want) {
			t.Errorf("one too many: %s", g)
		} else if !strings.HasPrefix(g, want[i]) {
			t.Errorf("got  %s\nwant %s…", g, want[i])
		}
	}
	for _, w := range want[min(len(got), len(want)):] {
		t.Errorf("not found: %s", w)
	}
}
