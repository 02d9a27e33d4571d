package tidy

import (
	"slices"
	"strings"
)

// adapters are the folders that know one technology or one craft, and the
// contracts' suites. Each imports the domain; none imports another, so that
// each can be read, tested and replaced alone. Only the assemblies put them
// together.
var adapters = []string{
	"memengine", "redisengine", "sqlledger", "httpapi", "client", "console",
	"idgen", "redpacket", "lock", "limit", "audience", "events", "consumer", "gateway", "room", "ticket", "enginetest", "ledgertest",
}

// assemblies are the folders that put adapters together: nothing below them
// imports them.
var assemblies = []string{"embedded", "cmd", "lab", "bench", "examples"}

// inner are the assemblies below internal, which may import anything: the
// simulation of whole nodes, and the rooms of the program cmd/dibs. They are
// internal since nothing outside of the module may build on them.
var inner = []string{"internal/simulation", "internal/cli"}

// within reports whether a path is one of the folders, or below one.
func within(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

// checkImports reports imports that go up or across the house.
func checkImports(t *tree, out *findings) {
	for _, s := range t.sources {
		for _, imp := range s.file.Imports {
			if why := t.never(s, importPath(imp)); why != "" {
				out.add("imports", s.path, t.line(imp.Pos()), "imports %s: %s", importPath(imp), why)
			}
		}
	}
}

// never returns why file s must not import p, or "" when it may. Test files
// may put together what they like, except that internal stays below the domain.
func (t *tree) never(s *source, p string) string {
	if p == "C" {
		return "the binary is static, without cgo"
	}
	from := s.house()
	ours := p == t.module || strings.HasPrefix(p, t.module+"/")
	path := strings.TrimPrefix(strings.TrimPrefix(p, t.module), "/")
	to, _, _ := strings.Cut(path, "/")
	switch {
	case within(s.path, inner):
	case from == "internal":
		if ours && to != "internal" {
			return "internal packages are leaves and import only each other"
		}
	case s.test:
	case from == "":
		if !standard(p) {
			return "the domain imports the standard library only"
		}
	case slices.Contains(adapters, from):
		if ours && to != from && slices.Contains(adapters, to) {
			return "adapters never import each other"
		}
		if ours && (slices.Contains(assemblies, to) || within(path, inner)) {
			return "adapters do not import what puts them together"
		}
	}
	return ""
}

// standard tells the standard library by the dot that the first element of
// every other import path has, that of this module too.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

// vague are names of packages that say nothing about what is in them.
var vague = []string{"pkg", "util", "utils", "common", "helper", "helpers", "models", "misc", "shared", "base"}

// checkPackageNames reports packages named for nothing in particular.
func checkPackageNames(t *tree, out *findings) {
	for _, s := range t.sources {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if slices.Contains(vague, name) {
			out.add("package-name", s.path, t.line(s.file.Name.Pos()), "package %s: name it for what it holds", name)
		}
	}
}
