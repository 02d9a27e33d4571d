// Package tidy keeps the rules of the house that no compiler keeps: sizes, doc
// comments, words, links between documents and the headers of Lua scripts.
// CONTRIBUTING.md says the rules in prose; internal/house keeps what may import
// what.
//
// Its test runs [Check] over this repository, so a broken rule is a red test.
package tidy

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Finding is one broken rule at one place.
type Finding struct {
	// File is slash-separated and relative to the root of the repository.
	File string
	// Line counts from 1.
	Line int
	// Rule is the short name of the rule that is broken.
	Rule string
	// Text says what is wrong, for the person who has to put it right.
	Text string
}

// String shows the finding as file:line: text (rule), which editors can open.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.File, f.Line, f.Text, f.Rule)
}

// findings collects what the rules report.
// A rule only adds to it.
type findings []Finding

func (fs *findings) add(rule, file string, line int, format string, args ...any) {
	*fs = append(*fs, Finding{File: file, Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// Check runs every rule over the repository at fsys and returns what is
// broken, ordered by file and line. The error is not nil only when fsys cannot
// be read or has no go.mod; a Go file that does not parse is a finding.
func Check(fsys fs.FS) ([]Finding, error) {
	t, err := load(fsys)
	if err != nil {
		return nil, fmt.Errorf("tidy: %w", err)
	}
	var out findings
	for _, rule := range []func(*tree, *findings){
		checkParse, checkFileSize, checkFunctionSize,
		checkSleeps, checkSkips,
		checkPackageNames, checkDocComments, checkCommentNames,
		checkPaths, checkWords,
		checkReadmes, checkLinks, checkLua,
	} {
		rule(t, &out)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Text, b.Text))
	})
	return out, nil
}
