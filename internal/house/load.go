package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// house is the module as it was read: its packages, with types.
// Nothing changes once it is loaded.
type house struct {
	// module is the module path.
	module string
	fset   *token.FileSet
	// packages are ordered by name. Packages without a Go file that is written by
	// hand and outside of tests are left out.
	packages []*room
	// exports leads from an import path to the file with the compiler's export data.
	exports map[string]string
}

// room is one package of the house.
type room struct {
	// name is the folder relative to the module's root: "." or "ledger/sql".
	name string
	// imports are the import paths of its files for any platform; testImports are
	// those of its tests on this one.
	imports, testImports []string
	files                []*source
	types                *types.Package
	info                 *types.Info
	// faults are what the type checker complains about. A package in the middle of
	// a change can still be measured, roughly.
	faults []error
}

// source is one Go file that is neither a test nor generated.
type source struct {
	// name is the file's name without its folder.
	name string
	ast  *ast.File
	// lines, blank and comments count all lines, the empty ones, and those that hold
	// only a comment.
	lines, blank, comments int
	// functions has the length of each function in lines.
	functions []int
	// tested is set when a test file of the same name stands beside it.
	tested bool
}

// listed is what `go list` says about a package; only the fields that are used.
type listed struct {
	ImportPath, Dir, Export           string
	DepOnly                           bool
	GoFiles, CgoFiles, IgnoredGoFiles []string
	TestImports, XTestImports         []string
	Module                            *struct {
		Path, Dir string
		Main      bool
	}
}

// load reads the packages that the patterns name, of the module around dir.
// Imports are resolved from the compiler's export data, which `go list` builds
// or takes from the build cache, so that only the named packages are checked
// from source.
// An error means that the packages cannot be read at all. A package that does not
// compile is loaded, with its faults.
func load(ctx context.Context, dir string, patterns ...string) (*house, error) {
	all, err := list(ctx, dir, patterns)
	if err != nil {
		return nil, err
	}
	h := &house{fset: token.NewFileSet(), exports: map[string]string{}}
	for _, l := range all {
		h.exports[l.ImportPath] = l.Export
	}
	imp := importer.ForCompiler(h.fset, "gc", func(path string) (io.ReadCloser, error) {
		if h.exports[path] == "" {
			return nil, fmt.Errorf("%s has no export data; does it compile?", path)
		}
		return os.Open(h.exports[path])
	})
	for _, l := range all {
		if l.DepOnly || l.Module == nil || !l.Module.Main {
			continue
		}
		h.module = l.Module.Path
		if err := h.enter(l, imp); err != nil {
			return nil, err
		}
	}
	if len(h.packages) == 0 {
		return nil, fmt.Errorf("no package of the module matches %s", strings.Join(patterns, " "))
	}
	slices.SortFunc(h.packages, func(a, b *room) int { return strings.Compare(a.name, b.name) })
	return h, nil
}

// list asks the go command for the packages and all that they import.
// -e lists packages with errors too, and -export builds what is not in the cache,
// which may take minutes the first time.
func list(ctx context.Context, dir string, patterns []string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-deps", "-export", "-trimpath",
		"-json=ImportPath,Dir,Export,DepOnly,GoFiles,CgoFiles,IgnoredGoFiles,TestImports,XTestImports,Module", "--"}, patterns...)...)
	cmd.Dir = dir
	// As a release is built, and as vet reads it in make test: else all is compiled once more.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
}

// enter parses and checks one package. Files for other platforms are measured
// by their lines only, since they cannot be checked together with these.
// An error means that a file cannot be read or parsed; faults of types are kept in
// the package.
func (h *house) enter(l listed, imp types.Importer) error {
	name, err := filepath.Rel(l.Module.Dir, l.Dir)
	if err != nil {
		return err
	}
	r := &room{name: filepath.ToSlash(name), testImports: slices.Concat(l.TestImports, l.XTestImports)}
	tests, err := testFiles(l.Dir)
	if err != nil {
		return err
	}
	var built []*ast.File
	for _, f := range slices.Concat(l.GoFiles, l.CgoFiles, l.IgnoredGoFiles) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		s, err := h.read(l.Dir, f)
		if err != nil {
			return err
		}
		for _, imp := range s.ast.Imports {
			r.imports = append(r.imports, strings.Trim(imp.Path.Value, "\"`"))
		}
		// A file for another platform may declare what another file declares.
		if !slices.Contains(l.IgnoredGoFiles, f) {
			built = append(built, s.ast)
		}
		if !ast.IsGenerated(s.ast) {
			s.tested = tests[strings.TrimSuffix(f, ".go")]
			r.files = append(r.files, s)
		}
	}
	// A package of tests or generated files alone is not measured.
	if len(r.files) == 0 {
		return nil
	}
	slices.Sort(r.imports)
	r.imports = slices.Compact(r.imports)
	slices.SortFunc(r.files, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	r.info = &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: imp, Error: func(err error) { r.faults = append(r.faults, err) }}
	// The first fault is among those that the Error function has collected.
	r.types, _ = conf.Check(l.ImportPath, h.fset, built, r.info)
	h.packages = append(h.packages, r)
	return nil
}

// testFiles returns the names of the test files in a folder, without "_test.go".
// It reads the folder, since the go command lists no tests of other platforms.
func testFiles(dir string) (map[string]bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), "_test.go"); ok {
			out[name] = true
		}
	}
	return out, nil
}

// read parses a file and counts its lines.
// The path is part of each position, so that fault messages can be opened.
func (h *house) read(dir, name string) (*source, error) {
	path := filepath.Join(dir, name)
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(h.fset, path, body, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		name:      name,
		ast:       file,
		lines:     h.fset.File(file.FileStart).LineCount(),
		blank:     blankLines(body),
		comments:  h.commentLines(file, body),
		functions: h.functionLines(file),
	}, nil
}

// Blank lines within a comment or a text count as well.
func blankLines(body []byte) int {
	n := 0
	for line := range bytes.Lines(body) {
		if len(bytes.TrimSpace(line)) == 0 {
			n++
		}
	}
	return n
}

// commentLines counts the lines that hold a comment and no code before it.
func (h *house) commentLines(file *ast.File, body []byte) int {
	n := 0
	for _, group := range file.Comments {
		// A comment over several lines counts them all, and its first line only when no
		// code stands before it.
		for _, c := range group.List {
			from, to := h.fset.Position(c.Pos()), h.fset.Position(c.End())
			n += to.Line - from.Line
			if len(bytes.TrimSpace(body[from.Offset-from.Column+1:from.Offset])) == 0 {
				n++
			}
		}
	}
	return n
}

// functionLines measures the declared functions, and the literals outside of
// functions, from `func` to the closing brace.
// A literal in a function counts towards the function, as in internal/tidy.
func (h *house) functionLines(file *ast.File) []int {
	var out []int
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				out = append(out, h.fset.Position(n.End()).Line-h.fset.Position(n.Pos()).Line+1)
				return false
			}
			return true
		})
	}
	return out
}
