package tidy

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// luaSubjects are what the header of a Lua script has to speak of, each at the
// start of a comment line; before them stands the purpose.
var luaSubjects = []string{"KEYS", "ARGV", "Returns", "Retry"}

var (
	luaIndex = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\]`)
	// luaRange is how a header says "from here on", as in KEYS[3..].
	luaRange = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\s*(?:\.\.\.?|…)\s*[A-Za-z0-9]*\]`)
	// luaDynamic is an index that the body computes.
	luaDynamic = regexp.MustCompile(`\b(KEYS|ARGV)\[\s*[^\]\d\s]|unpack\(\s*(KEYS|ARGV)\b|pairs\(\s*(KEYS|ARGV)\b|#(KEYS|ARGV)\b`)
	luaBlock   = regexp.MustCompile(`(?s)--\[\[.*?\]\]`)
	luaComment = regexp.MustCompile(`--[^\n]*`)
)

// checkLua reports Lua scripts whose header does not say what the script is
// for, what it takes, what it returns and whether it may be tried again, or
// whose header and body disagree about KEYS and ARGV.
// A caller in Go reads the header and not the script, so a header that is wrong leads
// to calls that are wrong.
func checkLua(t *tree, out *findings) {
	for _, x := range t.texts {
		if path.Ext(x.path) != ".lua" {
			continue
		}
		header, body := luaHeader(x)
		if len(header) == 0 || opens(header[0], luaSubjects...) {
			out.add("lua-header", x.path, 1, "the header does not begin with the purpose")
		}
		for _, subject := range luaSubjects {
			if !slices.ContainsFunc(header, func(l string) bool { return opens(l, subject) }) {
				out.add("lua-header", x.path, 1, "the header has no line that begins with %s", subject)
			}
		}
		said := strings.Join(header, "\n")
		for _, table := range []string{"KEYS", "ARGV"} {
			compareIndexes(x, table, said, body, out)
		}
	}
}

// luaHeader splits a script into the text of its leading comment lines and the
// code below, without comments.
// It ends at the first line that is no comment, an empty one too.
func luaHeader(x text) (header []string, body string) {
	lines := x.lines()
	n := 0
	for n < len(lines) && strings.HasPrefix(lines[n], "--") && !strings.HasPrefix(lines[n], "--[[") {
		header = append(header, strings.TrimSpace(strings.TrimLeft(lines[n], "-")))
		n++
	}
	body = luaBlock.ReplaceAllString(strings.Join(lines[n:], "\n"), "")
	return header, luaComment.ReplaceAllString(body, "")
}

func opens(line string, subjects ...string) bool {
	return slices.ContainsFunc(subjects, func(s string) bool {
		return len(line) >= len(s) && strings.EqualFold(line[:len(s)], s)
	})
}

// compareIndexes reports indexes of KEYS or ARGV that only the header or only
// the body has. A range in the header covers every index from its start, and a
// computed index in the body may be any that the header names.
func compareIndexes(x text, table, header, body string, out *findings) {
	told, used := indexes(luaIndex, table, header), indexes(luaIndex, table, body)
	open := indexes(luaRange, table, header)
	dynamic := slices.ContainsFunc(luaDynamic.FindAllString(body, -1), func(m string) bool { return strings.Contains(m, table) })
	covered := func(n int) bool {
		return slices.Contains(told, n) || slices.ContainsFunc(open, func(from int) bool { return n >= from })
	}
	for _, n := range used {
		if !covered(n) {
			out.add("lua-header", x.path, 1, "the body uses %s[%d], the header does not tell of it", table, n)
		}
	}
	for _, n := range told {
		if !dynamic && !slices.Contains(used, n) {
			out.add("lua-header", x.path, 1, "the header tells of %s[%d], the body does not use it", table, n)
		}
	}
	if dynamic && len(told)+len(open) == 0 {
		out.add("lua-header", x.path, 1, "the body uses %s, the header names none", table)
	}
}

// indexes lists the numbers with which a table is used, each once.
func indexes(re *regexp.Regexp, table, s string) []int {
	var out []int
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		n, err := strconv.Atoi(m[2])
		if err == nil && m[1] == table && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
