package tidy

import "slices"

// vague are names of packages that say nothing about what is in them.
var vague = []string{"pkg", "util", "utils", "common", "helper", "helpers", "models", "misc", "shared", "base"}

// checkPackageNames reports packages named for nothing in particular.
// Test packages of the form name_test are judged by what they test.
func checkPackageNames(t *tree, out *findings) {
	for _, s := range t.sources {
		if name := packageName(s); slices.Contains(vague, name) {
			out.add("package-name", s.path, t.line(s.file.Name.Pos()), "package %s: name it for what it holds", name)
		}
	}
}
