package tidy

import (
	"testing"
)

// TestDocComments finds faults of the exported names without a comment.
func TestDocComments(t *testing.T) {
	find(t, []violation{
		{"function without a comment", file("lock/a.go", "package lock\n\nfunc F() {}\n"), []string{"lock/a.go:3: F has no doc comment"}},
		{"directive is no comment", file("lock/a.go", "package lock\n\n//go:noinline\nfunc F() {}\n"), []string{"lock/a.go:4: F has no doc comment"}},
		{"method without a comment", file("lock/a.go", "package lock\n\n// T is T.\ntype T[K any] struct{}\n\nfunc (t *T[K]) F() {}\n"), []string{"lock/a.go:6: T.F has no doc comment"}},
		{"type without a comment", file("lock/a.go", "package lock\n\n// A group.\ntype (\n\tT struct{}\n)\n"), []string{"lock/a.go:5: T has no doc comment"}},
		{"values without a comment", file("lock/a.go", "package lock\n\nvar A, b, C = 1, 2, 3\n\nconst D = 4\n"), []string{"lock/a.go:3: A has no doc comment", "lock/a.go:3: C has no doc comment", "lock/a.go:5: D has no doc comment"}},
		{"package without a comment", file("lock/inner/inner.go", "package inner\n"), []string{"lock/inner/inner.go:1: package inner has no package comment"}},
	})
}
