package tidy

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

var (
	firstWord = regexp.MustCompile(`^[A-Za-z]\w*`)
	// identifier finds a first word that only a name can be: no sentence begins with a small
	// letter, and no plain word has a capital inside.
	identifier = regexp.MustCompile(`^[a-z]|[a-z0-9][A-Z]`)
	// reference is a name of a package, as package.Name.
	reference = regexp.MustCompile(`(?:^|[^\w./-])([a-z]\w*)\.([A-Z]\w*)`)
)

// checkCommentNames reports comments that kept a name after the code had got another:
// doc comments that begin with it, and package.Name that no package of the module has.
func checkCommentNames(t *tree, out *findings) {
	declared := map[string]map[string]bool{}
	for _, s := range t.sources {
		name := packageName(s)
		if declared[name] == nil {
			declared[name] = map[string]bool{}
		}
		inDeclarations(s, func(_ *ast.CommentGroup, _ bool, names ...*ast.Ident) {
			for _, n := range names {
				declared[name][n.Name] = true
			}
		})
	}
	for _, s := range t.sources {
		inDeclarations(s, func(doc *ast.CommentGroup, method bool, names ...*ast.Ident) {
			t.beginning(s, doc, method, names, out)
		})
		t.references(s, declared, out)
	}
}

func packageName(s *source) string { return strings.TrimSuffix(s.file.Name.Name, "_test") }

// inDeclarations calls f with the names of every declaration and its doc comment, which is
// nil for a struct's field: its comment may speak for the fields that follow. method is set
// for a method of an interface.
func inDeclarations(s *source, f func(doc *ast.CommentGroup, method bool, names ...*ast.Ident)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f(n.Doc, false, n.Name)
		case *ast.GenDecl:
			if len(n.Specs) == 1 && !n.Lparen.IsValid() {
				f(n.Doc, false, specNames(n.Specs[0])...)
			}
		case *ast.TypeSpec:
			f(n.Doc, false, n.Name)
		case *ast.ValueSpec:
			f(n.Doc, false, n.Names...)
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				f(m.Doc, len(m.Names) > 0, m.Names...)
			}
		case *ast.Field:
			f(nil, false, n.Names...)
		}
		return true
	})
}

func specNames(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil
}

// beginning reports a doc comment that begins with another name than the declared ones.
// That of an interface's method begins with its name always.
func (t *tree) beginning(s *source, doc *ast.CommentGroup, method bool, names []*ast.Ident, out *findings) {
	if !said(doc) || len(names) == 0 {
		return
	}
	word := firstWord.FindString(doc.Text())
	if (method || identifier.MatchString(word)) && !slices.ContainsFunc(names, func(n *ast.Ident) bool { return n.Name == word }) {
		out.add("comment-name", s.path, t.line(doc.Pos()), "the comment of %s begins with %s", names[0].Name, word)
	}
}

// references reports package.Name in comments where a package of the module has no such name.
func (t *tree) references(s *source, declared map[string]map[string]bool, out *findings) {
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for _, m := range reference.FindAllStringSubmatch(strings.TrimLeft(c.Text, "/* "), -1) {
				if names, ours := declared[m[1]]; ours && m[1] != "main" && !names[m[2]] {
					out.add("comment-name", s.path, t.line(c.Pos()), "%s.%s does not exist", m[1], m[2])
				}
			}
		}
	}
}
