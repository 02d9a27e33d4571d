package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// The ceilings, which internal/house prints beside what there is. Most files and
// functions stay far below them.
// A function fits on one screen, and a file is read in one sitting.
const (
	MaxFileLines     = 600
	MaxFunctionLines = 70
)

// sizedExts are the kinds of code that the ceiling of files is for.
var sizedExts = []string{".go", ".lua", ".sh", ".js", ".mjs", ".ts", ".css"}

// checkFileSize reports code files above the ceiling, bar generated ones.
func checkFileSize(t *tree, out *findings) {
	for _, x := range t.texts {
		if !slices.Contains(sizedExts, path.Ext(x.path)) || strings.Contains(path.Base(x.path), ".min.") {
			continue
		}
		if n := x.lineCount(); n > MaxFileLines && !t.generated(x.path) {
			out.add("file-size", x.path, n, "%d lines, the ceiling is %d: split it by subject", n, MaxFileLines)
		}
	}
}

// It knows Go files only; other generated code is named *.min.*.
func (t *tree) generated(p string) bool {
	return slices.ContainsFunc(t.sources, func(s *source) bool { return s.path == p && ast.IsGenerated(s.file) })
}

// checkFunctionSize reports functions above the ceiling, from the line of
// `func` to that of the closing brace. A literal that is declared at the top
// level counts as a function; one inside a function counts towards it.
func checkFunctionSize(t *tree, out *findings) {
	for _, s := range t.sources {
		if ast.IsGenerated(s.file) {
			continue
		}
		for _, d := range s.file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					t.measure(s, n.Name.Name, n, out)
					return false
				case *ast.FuncLit:
					t.measure(s, "function literal", n, out)
					return false
				}
				return true
			})
		}
	}
}

// The doc comment above a function does not count.
func (t *tree) measure(s *source, name string, function ast.Node, out *findings) {
	first := t.line(function.Pos())
	if n := t.line(function.End()) - first + 1; n > MaxFunctionLines {
		out.add("function-size", s.path, first, "%s has %d lines, the ceiling is %d", name, n, MaxFunctionLines)
	}
}
