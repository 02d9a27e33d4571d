package main

import (
	"go/ast"
	"go/types"
	"path/filepath"
)

// uses counts how often the files of a package use names of one another:
// uses[a][b][name] is how often file a uses name, which file b declares.
type uses map[string]map[string]map[string]int

// fileUses counts the uses of package-level names, methods and fields between
// the files of a package. A call through an interface is not a use of the file
// that declares the interface's method: the caller needs no more than the
// interface's name.
// Generated files are not counted: nobody splits them by hand.
func (h *house) fileUses(r *room) uses {
	out := uses{}
	own := map[string]bool{}
	for _, f := range r.files {
		own[f.name] = true
	}
	owners := fieldOwners(r.types)
	for _, f := range r.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := r.info.Uses[id]
			name := label(r.types, obj, owners)
			if name == "" {
				return true
			}
			to := filepath.Base(h.fset.Position(obj.Pos()).Filename)
			if to != f.name && own[to] {
				out.add(f.name, to, name)
			}
			return true
		})
	}
	return out
}

func (u uses) add(from, to, name string) {
	if u[from] == nil {
		u[from] = map[string]map[string]int{}
	}
	if u[from][to] == nil {
		u[from][to] = map[string]int{}
	}
	u[from][to][name]++
}

// label names an object that ties files together, as Name or Type.Name. It
// returns "" for objects of other packages, types in functions and methods of
// interfaces. Local variables need no care: no other file uses them.
func label(in *types.Package, obj types.Object, owners map[*types.Var]string) string {
	if obj == nil || obj.Pkg() != in {
		return ""
	}
	if obj.Parent() == in.Scope() {
		return obj.Name()
	}
	switch obj := obj.(type) {
	case *types.Func:
		recv := obj.Signature().Recv()
		if recv == nil || types.IsInterface(recv.Type()) {
			return ""
		}
		return typeName(recv.Type()) + "." + obj.Name()
	// A field of a type without a name has no owner; the name then begins with the
	// point.
	case *types.Var:
		return owners[obj.Origin()] + "." + obj.Name()
	}
	return ""
}

// typeName returns the name of a receiver's type.
func typeName(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// fieldOwners leads from the fields of the package's struct types to the names
// of these types. Fields of structs without a name have no owner.
func fieldOwners(p *types.Package) map[*types.Var]string {
	out := map[*types.Var]string{}
	for _, name := range p.Scope().Names() {
		t, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		if s, ok := t.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f.Pkg() == p {
					out[f] = name
				}
			}
		}
	}
	return out
}
