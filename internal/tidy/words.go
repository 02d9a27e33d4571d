package tidy

import (
	"path"
	"regexp"
	"strings"
)

// The words below are put together from halves, or this file would break its
// own rules.
var (
	// traces are what a developer's machine leaves in files: its folders, and the host names of
	// package registries. Each user who builds dibs has a registry of their own choice.
	traces = map[string]string{
		"/wo" + "rk/": "a folder of one machine", "/ro" + "ot/": "a folder of one machine",
		"proxy.go" + "lang.org": "a package registry", "sum.go" + "lang.org": "a package registry",
		"registry.npm" + "js.org": "a package registry", "deb.deb" + "ian.org": "a package registry",
	}
	// unfinished marks work that was left for later, anywhere in a Go file.
	unfinished = regexp.MustCompile(`(?i)\b(to` + `do|fix` + `me)\b`)
	// excuses mark it in comments; in code and strings they may be honest words.
	excuses = regexp.MustCompile(`(?i)\b(ha` + `ck|st` + `ub|for n` + `ow|not implem` + `ented)\b`)
)

// checkPaths reports traces of one machine in any file that people write.
func checkPaths(t *tree, out *findings) {
	for _, x := range t.texts {
		for i, l := range x.lines() {
			for trace, what := range traces {
				if strings.Contains(l, trace) {
					out.add("machine-path", x.path, i+1, "names %s, %s", trace, what)
				}
			}
		}
	}
}

// checkWords reports words for unfinished work in Go files.
// Words in code are judged only where no honest meaning is likely.
func checkWords(t *tree, out *findings) {
	for _, x := range t.texts {
		if path.Ext(x.path) != ".go" {
			continue
		}
		for i, l := range x.lines() {
			if w := unfinished.FindString(l); w != "" {
				out.add("unfinished", x.path, i+1, "says %q: finish it, or open an issue", w)
			}
		}
	}
	for _, s := range t.sources {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if w := excuses.FindString(c.Text); w != "" {
					out.add("unfinished", s.path, t.line(c.Pos()), "says %q: finish it, or open an issue", w)
				}
			}
		}
	}
}
