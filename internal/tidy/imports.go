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

// servesDomain are internal packages below the adapters: they know the domain's types,
// and nothing else of the house but internal.
var servesDomain = []string{"internal/web/"}

// simulation puts whole nodes together to test them. It is internal since nothing
// but its own tests may use it.
const simulation = "internal/simulation/"

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
	to, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, t.module), "/"), "/")
	switch {
	case strings.HasPrefix(s.path, simulation):
	case from == "internal":
		servant := slices.ContainsFunc(servesDomain, func(dir string) bool { return strings.HasPrefix(s.path, dir) })
		if ours && to != "internal" && !(servant && p == t.module) {
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
		if ours && slices.Contains(assemblies, to) {
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
