package tidy

import (
	"testing"
)

// TestPackageNames finds faults of the names of packages.
func TestPackageNames(t *testing.T) {
	find(t, []violation{
		{"vague package", file("internal/util/util.go", "// Package util is a drawer.\npackage util\n"), []string{"internal/util/util.go:2: package util: name it"}},
	})
}
