package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// checkDocComments reports exported names without a doc comment, and packages
// without a package comment. Commands and tests export nothing.
func checkDocComments(t *tree, out *findings) {
	first := map[string]*source{}
	documented := map[string]bool{}
	for _, s := range t.sources {
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		dir := path.Dir(s.path)
		if first[dir] == nil {
			first[dir] = s
		}
		documented[dir] = documented[dir] || said(s.file.Doc)
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				t.funcDoc(s, d, out)
			case *ast.GenDecl:
				t.groupDoc(s, d, out)
			}
		}
	}
	for dir, s := range first {
		if !documented[dir] {
			out.add("doc-comment", s.path, t.line(s.file.Package), "package %s has no package comment", s.file.Name.Name)
		}
	}
}

// said reports whether a comment says anything beyond directives.
// A directive alone, such as go:embed, says nothing to a reader.
func said(c *ast.CommentGroup) bool { return c != nil && strings.TrimSpace(c.Text()) != "" }

// Methods of types that are not exported need no comment: nobody outside sees them,
// but through an interface that has one.
func (t *tree) funcDoc(s *source, d *ast.FuncDecl, out *findings) {
	if !d.Name.IsExported() || said(d.Doc) {
		return
	}
	name := d.Name.Name
	if d.Recv != nil {
		on := receiver(d.Recv.List[0].Type)
		if !ast.IsExported(on) {
			return
		}
		name = on + "." + name
	}
	out.add("doc-comment", s.path, t.line(d.Name.Pos()), "%s has no doc comment", name)
}

// receiver returns the name of a receiver's type without pointer and type
// parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

// groupDoc checks one declaration of types, constants or variables. A comment
// on a group speaks for its constants and variables, but not for its types.
func (t *tree) groupDoc(s *source, d *ast.GenDecl, out *findings) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			alone := d.Lparen == token.NoPos
			if said(spec.Doc) || said(spec.Comment) || alone && said(d.Doc) {
				continue
			}
			t.nameDoc(s, spec.Name, out)
		case *ast.ValueSpec:
			if said(spec.Doc) || said(spec.Comment) || said(d.Doc) {
				continue
			}
			for _, name := range spec.Names {
				t.nameDoc(s, name, out)
			}
		}
	}
}

// nameDoc reports an exported name that no comment speaks for.
func (t *tree) nameDoc(s *source, name *ast.Ident, out *findings) {
	if name.IsExported() {
		out.add("doc-comment", s.path, t.line(name.Pos()), "%s has no doc comment", name.Name)
	}
}
