package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/program"
)

// readers are the pages that people read, from this folder.
func readers(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/zh/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// blocks returns the blocks of a page that are in one of the languages.
func blocks(page string, languages ...string) []string {
	var out []string
	for i, part := range strings.Split("\n"+page, "\n```") {
		language, body, _ := strings.Cut(part, "\n")
		if i%2 == 1 && slices.Contains(languages, language) {
			out = append(out, body)
		}
	}
	return out
}

// TestCommandsParse: every block of shell is shell, and every call of dibs in
// it names a verb and flags that there are, with as many arguments as the verb
// takes. Blocks marked sh are run as well; those marked bash need what a test
// does not have, such as other machines.
func TestCommandsParse(t *testing.T) {
	calls := 0
	for _, page := range readers(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(string(text), "sh", "bash") {
			read := exec.CommandContext(t.Context(), "bash", "-n")
			read.Stdin = strings.NewReader(block)
			if said, err := read.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", page, err, said, block)
			}
			for _, call := range dibsCalls(block) {
				calls++
				if err := parses(call); err != nil {
					t.Errorf("%s: dibs %s: %v", page, strings.Join(call, " "), err)
				}
			}
		}
	}
	if calls < 150 {
		t.Errorf("only %d calls of dibs were found", calls)
	}
}

var (
	remark       = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	substitution = regexp.MustCompile(`\$\(([^()]*)\)`)
)

// dibsCalls returns the arguments of each call of dibs in a block.
func dibsCalls(block string) [][]string {
	block = remark.ReplaceAllString(strings.ReplaceAll(block, "\\\n", " "), "")
	// A call whose output is an argument stands by itself, behind the others.
	for m := substitution.FindStringSubmatch(block); m != nil; m = substitution.FindStringSubmatch(block) {
		block = strings.Replace(block, m[0], "OUTPUT", 1) + "\n" + m[1]
	}
	block = strings.ReplaceAll(block, "\n", " ; ")
	var out [][]string
	words := shellWords(block)
	for i, word := range words {
		known := word == "dibs" || word == "bin/dibs" || word == "./cmd/dibs"
		// A word that only looks like a call is none: docker run dibs, cd dibs.
		if !known || i > 0 && slices.Contains([]string{"install", "restart", "enable", "--now", "docker", "cd", "generic", "namespace", "-t", "deb"}, words[i-1]) {
			continue
		}
		end := i + 1
		for end < len(words) && !ends(words[end]) {
			end++
		}
		out = append(out, words[i+1:end])
	}
	return out
}

// ends reports whether a word ends a command.
func ends(word string) bool {
	return slices.Contains([]string{";", "|", "||", "&&", "&", "<"}, word) ||
		strings.HasPrefix(word, ">") || strings.HasPrefix(word, "2>")
}

// shellWords splits at blanks that are not quoted, and at semicolons.
func shellWords(block string) []string {
	var out []string
	var word strings.Builder
	quote := rune(0)
	flush := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	for _, r := range block {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ';':
			flush()
			out = append(out, ";")
		case quote == 0 && (r == ' ' || r == '\t' || r == ')'):
			flush()
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return out
}

// parses looks for the verb and reads its flags, without running it.
func parses(call []string) error {
	// A page writes … for arguments that it leaves out.
	call = slices.DeleteFunc(slices.Clone(call), func(word string) bool { return word == "…" })
	root := program.Root(cli.NewBuild("", ""))
	verb, rest, err := root.Find(call)
	if err != nil {
		return err
	}
	if err := verb.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := verb.Flags().GetBool("help"); err == nil && help {
		return nil
	}
	return verb.ValidateArgs(verb.Flags().Args())
}
