package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestTargets type-checks the program for each system of a release but this one, which
// TestRelease builds. A build of the others takes minutes; this takes seconds, and finds
// what breaks one: a name that a system lacks, a file whose twin was forgotten.
// Two processors of a system that have the same files of the module are checked once.
func TestTargets(t *testing.T) {
	checked := map[string]bool{ownFiles(t, here): true}
	for _, to := range targets {
		files := ownFiles(t, to)
		if checked[files] {
			continue
		}
		checked[files] = true
		t.Run(to.String(), func(t *testing.T) {
			own, faults := typeFaults(t, to, "./cmd/dibs", nil)
			for _, fault := range faults {
				t.Error(fault)
			}
			if own < 50 {
				t.Errorf("only %d packages of the module were checked", own)
			}
		})
	}
	if len(checked) < 3 {
		t.Errorf("only %d systems differ", len(checked))
	}
	// Without its twin for systems that are no Unix, a file is missed on Windows.
	twin, err := filepath.Abs("../servers/inode_other.go")
	must(t, err)
	empty := map[string][]byte{twin: []byte("//go:build !unix\n\npackage servers\n")}
	_, faults := typeFaults(t, target{"windows", "amd64"}, "./internal/servers", empty)
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "undefined: inodeOf") {
		t.Errorf("a file that is missing on Windows shows as %v", faults)
	}
}

// ownFiles are the names of the module's files that the program is made of on a system.
func ownFiles(t *testing.T, to target) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{.ImportPath}} {{.GoFiles}} {{.EmbedFiles}}{{end}}{{end}}`, "./cmd/dibs")
	list.Dir = "../.."
	list.Env = to.environ()
	names, err := list.Output()
	must(t, err)
	return string(names)
}

// environ is the environment in which the go command builds for a system.
func (to target) environ() []string {
	return append(os.Environ(), "GOOS="+to.os, "GOARCH="+to.arch, "CGO_ENABLED=0", "GOFLAGS=")
}

// typeFaults returns what the type checker has against a package, and the packages of the
// module that it is made of, on a system; own counts them. It reads no bodies of functions
// of other modules: they are built elsewhere, and the time goes there.
func typeFaults(t *testing.T, to target, pattern string, overlay map[string][]byte) (own int, faults []error) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	cfg := packages.Config{
		Context: t.Context(), Dir: root, Overlay: overlay,
		Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedModule,
		Env:  to.environ(),
		ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
			if err != nil || strings.HasPrefix(name, root+string(filepath.Separator)) {
				return f, err
			}
			for _, d := range f.Decls {
				if function, ok := d.(*ast.FuncDecl); ok {
					function.Body = nil
				}
			}
			return f, nil
		},
	}
	loaded, err := packages.Load(&cfg, pattern)
	must(t, err)
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main {
			return
		}
		own++
		for _, fault := range p.Errors {
			faults = append(faults, fault)
		}
	})
	return own, faults
}
