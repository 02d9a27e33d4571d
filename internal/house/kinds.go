package main

import "go/types"

// kind is a declared type with its number of methods: those declared on it, or
// the whole method set of an interface.
type kind struct {
	named       *types.Named
	methods     int
	isInterface bool
}

// kinds returns the types that the package declares, by name.
// Aliases are left out: their methods are those of another type.
func (r *room) kinds() []kind {
	var out []kind
	for _, name := range r.types.Scope().Names() {
		t, ok := r.types.Scope().Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		named, ok := t.Type().(*types.Named)
		if !ok {
			continue
		}
		k := kind{named: named, methods: named.NumMethods()}
		if i, ok := named.Underlying().(*types.Interface); ok {
			k.isInterface, k.methods = true, i.NumMethods()
		}
		out = append(out, k)
	}
	return out
}

// exported counts the exported names of the package's scope.
// Methods and fields are not counted; the limits have measures of their own for
// methods.
func (r *room) exported() int {
	n := 0
	for _, name := range r.types.Scope().Names() {
		if r.types.Scope().Lookup(name).Exported() {
			n++
		}
	}
	return n
}
