package dibs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestChinesePages keeps the pages of docs/zh in step with their English
// editions: the same headings by number and level, the same tables by number of
// rows, the same code blocks, and links both ways.
func TestChinesePages(t *testing.T) {
	pages, err := filepath.Glob("docs/zh/*.md")
	if err != nil {
		t.Fatal(err)
	}
	// The pages that users follow first.
	for _, name := range []string{"COUPONS", "GUARANTEES", "LAB", "OPERATIONS", "ORDERS", "REDPACKET", "WAITINGROOM"} {
		if !slices.Contains(pages, filepath.Join("docs", "zh", name+".md")) {
			t.Errorf("%s.md has no Chinese edition", name)
		}
	}
	for _, page := range pages {
		name := filepath.Base(page)
		en, zh := read(t, "docs/"+name), read(t, page)
		for i, b := range fenced(en, "") {
			if blocks := fenced(zh, ""); i >= len(blocks) || blocks[i] != b {
				t.Errorf("%s does not have the code block %d of the English page:\n%s", page, i+1, b)
				break
			}
		}
		if a, b := len(fenced(en, "")), len(fenced(zh, "")); a != b {
			t.Errorf("%s has %d code blocks, the English page %d", page, b, a)
		}
		if a, b := levels(en), levels(zh); !slices.Equal(a, b) {
			t.Errorf("the headings of %s have the levels %v, the English page %v", page, b, a)
		}
		if a, b := tables(en), tables(zh); !slices.Equal(a, b) {
			t.Errorf("the tables of %s have the rows %v, the English page %v", page, b, a)
		}
		if !strings.Contains(en, "[中文](zh/"+name+")") || !strings.Contains(zh, "[English](../"+name+")") {
			t.Errorf("%s and its English edition do not link to each other", page)
		}
	}
}

// prose returns the lines of a page outside of its code blocks.
func prose(page string) []string {
	var out []string
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if !code {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return out
}

// levels returns the level of each heading of a page.
func levels(page string) []int {
	var out []int
	for _, line := range prose(page) {
		if mark, _, found := strings.Cut(line, " "); found && mark != "" && strings.Trim(mark, "#") == "" {
			out = append(out, len(mark))
		}
	}
	return out
}

// tables returns the number of rows of each table of a page.
func tables(page string) []int {
	var out []int
	within := false
	for _, line := range prose(page) {
		row := strings.HasPrefix(line, "|")
		switch {
		case row && !within:
			out = append(out, 1)
		case row:
			out[len(out)-1]++
		}
		within = row
	}
	return out
}

var (
	// halfWidth is punctuation that Chinese text writes with full width.
	halfWidth = regexp.MustCompile(`\p{Han}[,.:;!?()]`)
	// halfWidthChinese also finds it before a Chinese character. English pages have it
	// there, around the Chinese words that they quote.
	halfWidthChinese = regexp.MustCompile(halfWidth.String() + `|[,:;!?)]\p{Han}`)
	// target is the address of a Markdown link, which is no text.
	target = regexp.MustCompile(`\]\([^)]*\)`)
	// span is code within a line of Markdown.
	span = regexp.MustCompile("`[^`]*`")
)

// TestChinesePunctuation looks for half-width punctuation beside a Chinese
// character in every page, in the texts of the web, and in the strings of every Go file
// but tests, which quote what others write.
func TestChinesePunctuation(t *testing.T) {
	texts, err := filepath.Glob("web/text/*.json")
	if err != nil || len(texts) == 0 {
		t.Fatalf("the web has no texts: %v", err)
	}
	for _, page := range slices.Concat(allPages(t), []string{"CHANGELOG.md"}, texts) {
		wrong := halfWidth
		if strings.Contains(page, "zh") || filepath.Ext(page) == ".json" {
			wrong = halfWidthChinese
		}
		for i, line := range strings.Split(read(t, page), "\n") {
			line = span.ReplaceAllString(target.ReplaceAllString(line, "]"), "")
			if found := wrong.FindString(line); found != "" {
				t.Errorf("%s:%d: %q", page, i+1, found)
			}
		}
	}
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if found := halfWidthChinese.FindString(text); err != nil || found != "" {
					t.Errorf("%s: %q in %s", files.Position(lit.Pos()), found, lit.Value)
				}
			}
			return true
		})
	})
}
