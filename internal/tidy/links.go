package tidy

import (
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// readmes are the two front doors, one per language that dibs speaks.
var readmes = []string{"README.md", "README.zh-CN.md"}

// link is a target as written in a Markdown file.
type link struct {
	line   int
	target string
}

var (
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	defLink    = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)`)
	htmlLink   = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	htmlAnchor = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// prose returns the lines of a Markdown file with code blocks emptied, so that
// line numbers stay true.
func prose(x text) []string {
	lines := x.lines()
	fence := ""
	for i, l := range lines {
		trimmed := strings.TrimSpace(l)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			lines[i] = ""
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence, lines[i] = trimmed[:3], ""
		}
	}
	return lines
}

// Code spans are left out: what they show is no link.
func links(x text) []link {
	var out []link
	for i, l := range prose(x) {
		l = codeSpan.ReplaceAllString(l, "")
		for _, re := range []*regexp.Regexp{inlineLink, defLink, htmlLink} {
			for _, m := range re.FindAllStringSubmatch(l, -1) {
				out = append(out, link{line: i + 1, target: m[1]})
			}
		}
	}
	return out
}

// anchors returns the fragments that a Markdown file answers to: the headings
// in the form that code hosts give them, and explicit ids.
// Two headings of one name share an anchor here; hosts number the second.
func anchors(x text) map[string]bool {
	out := map[string]bool{}
	for _, l := range prose(x) {
		if m := heading.FindStringSubmatch(l); m != nil {
			out[slug(m[1])] = true
		}
		for _, m := range htmlAnchor.FindAllStringSubmatch(l, -1) {
			out[m[1]] = true
		}
	}
	return out
}

// slug drops punctuation, lowers the case and joins words with hyphens.
func slug(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// checkReadmes reports a missing README, and one that does not lead to its
// other language.
func checkReadmes(t *tree, out *findings) {
	for i, name := range readmes {
		other := readmes[1-i]
		at := slices.IndexFunc(t.texts, func(x text) bool { return x.path == name })
		if at < 0 {
			out.add("readme", name, 1, "there is no %s", name)
			continue
		}
		linked := slices.ContainsFunc(links(t.texts[at]), func(l link) bool { return path.Clean(l.target) == other })
		if !linked {
			out.add("readme", name, 1, "does not link to %s", other)
		}
	}
}

// checkLinks reports links inside the repository that lead nowhere, in every
// Markdown file.
func checkLinks(t *tree, out *findings) {
	for _, x := range t.texts {
		if path.Ext(x.path) != ".md" {
			continue
		}
		for _, l := range links(x) {
			if why := t.leads(x, l.target); why != "" {
				out.add("link", x.path, l.line, "the link to %s leads nowhere: %s", l.target, why)
			}
		}
	}
}

// leads returns why a link from x does not resolve, or "" when it does or
// leaves the repository.
// Other hosts are not asked: a test must not depend on the network.
func (t *tree) leads(x text, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	to := x.path
	if u.Path != "" {
		to = path.Join(path.Dir(x.path), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			to = path.Clean(strings.TrimPrefix(u.Path, "/"))
		}
		if !fs.ValidPath(to) {
			return "it leaves the repository"
		}
		if _, err := fs.Stat(t.fsys, to); err != nil {
			return "there is no such file"
		}
	}
	// Fragments of code, #L10 say, are the host's business.
	if u.Fragment == "" || path.Ext(to) != ".md" {
		return ""
	}
	at := slices.IndexFunc(t.texts, func(y text) bool { return y.path == to })
	if at >= 0 && !anchors(t.texts[at])[u.Fragment] {
		return "no heading there has that name"
	}
	return ""
}
