package tidy

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is the repository, read once.
// It does not change once it is loaded, so the rules may run in any order.
type tree struct {
	fsys fs.FS
	// module is the module path that go.mod declares.
	module string
	fset   *token.FileSet
	// texts are all files that people write, Go files among them.
	texts []text
	// sources are the Go files that parse.
	sources []*source
	// broken are the Go files that do not, with the parser's words.
	broken []Finding
}

// text is one file that people write.
type text struct {
	path string
	body string
}

func (x text) lines() []string { return strings.Split(x.body, "\n") }

// lineCount counts as wc does, and an unfinished last line too.
func (x text) lineCount() int {
	n := strings.Count(x.body, "\n")
	if x.body != "" && !strings.HasSuffix(x.body, "\n") {
		n++
	}
	return n
}

// source is one Go file.
type source struct {
	text
	file *ast.File
	// test is set for files that only `go test` compiles.
	test bool
}

// imports reports whether the file imports p, and under which name.
func (s *source) imports(p string) (name string, ok bool) {
	for _, imp := range s.file.Imports {
		if importPath(imp) != p {
			continue
		}
		if imp.Name != nil {
			return imp.Name.Name, true
		}
		return path.Base(p), true
	}
	return "", false
}

// forTests is set for test files and for the importable suites of contracts,
// which hold tests in files of another name.
func (s *source) forTests() bool {
	_, ok := s.imports("testing")
	return s.test || ok
}

// line is the number of a position's line, from 1.
func (t *tree) line(p token.Pos) int { return t.fset.Position(p).Line }

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		// The parser has accepted the literal, so this cannot be; the raw text
		// then matches no rule's allowance.
		return imp.Path.Value
	}
	return p
}

// The kinds of file that people write. Others (logs, images, sums, built
// things) are nobody's words.
var (
	writtenExts = []string{
		".go", ".md", ".mod", ".sh", ".yml", ".yaml", ".toml", ".json", ".sql", ".lua",
		".js", ".mjs", ".ts", ".css", ".html", ".tmpl", ".txt", ".jmx", ".conf",
	}
	writtenNames = []string{"Makefile", "Dockerfile", "LICENSE", "run", ".gitignore"}
	// skippedDirs hold what is built, installed, measured or made by fuzzing.
	skippedDirs = []string{"node_modules", "vendor", "dist", "testdata"}
	// skippedTops are such folders only at the root.
	skippedTops = []string{"bin", "data", "dibs-data"}
	// hiddenDirs are the folders with a leading dot that are the project's own.
	hiddenDirs = []string{".ci", ".github"}
)

// skipDir reports whether a folder and all below it is left out.
func skipDir(p string) bool {
	name := path.Base(p)
	if p == "." {
		return false
	}
	return strings.HasPrefix(name, ".") && !slices.Contains(hiddenDirs, name) ||
		slices.Contains(skippedDirs, name) || slices.Contains(skippedTops, p)
}

// written reports whether people write a file of this name.
func written(p string) bool {
	return slices.Contains(writtenExts, path.Ext(p)) || slices.Contains(writtenNames, path.Base(p))
}

// load reads the repository. A file that goes away meanwhile is left out; a folder
// that cannot be read is an error.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // An editor's or a test's file that has just gone away.
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipDir(p) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !written(p) {
			return nil
		}
		return t.read(p)
	})
	if err != nil {
		return nil, err
	}
	if t.module == "" {
		return nil, errors.New("go.mod declares no module")
	}
	return t, nil
}

func (t *tree) read(p string) error {
	body, err := fs.ReadFile(t.fsys, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	x := text{path: p, body: string(body)}
	t.texts = append(t.texts, x)
	if p == "go.mod" {
		t.module = moduleOf(x)
	}
	if path.Ext(p) == ".go" {
		t.parse(x)
	}
	return nil
}

// parse reads a Go file. One that does not parse is remembered as a finding:
// somebody may be in the middle of a line.
func (t *tree) parse(x text) {
	file, err := parser.ParseFile(t.fset, x.path, x.body, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.broken = append(t.broken, Finding{File: x.path, Line: 1, Rule: "parse", Text: err.Error()})
		return
	}
	t.sources = append(t.sources, &source{text: x, file: file, test: strings.HasSuffix(x.path, "_test.go")})
}

// moduleOf is the module that a go.mod declares, "" for none.
func moduleOf(x text) string {
	for _, l := range x.lines() {
		if m, ok := strings.CutPrefix(l, "module "); ok {
			return strings.TrimSpace(m)
		}
	}
	return ""
}

// checkParse reports the Go files that do not parse: every other rule is blind
// to them.
func checkParse(t *tree, out *findings) { *out = append(*out, t.broken...) }
