package tidy

import (
	"go/ast"
	"slices"
)

// checkSleeps reports every use of Sleep of package time in test code: a sleep
// is either too short on a busy machine or too long on every other. Tests wait
// for a condition or a channel, or run in a bubble of testing/synctest and
// wait on a timer.
// Files that import time under another name are judged too.
func checkSleeps(t *tree, out *findings) {
	for _, s := range t.sources {
		name, ok := s.imports("time")
		if !ok || !s.forTests() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				out.add("no-sleep", s.path, t.line(sel.Pos()), "a test sleeps: wait for a condition, or use testing/synctest")
			}
			return true
		})
	}
}

// skips are the methods of testing.TB (and of property testers built like it)
// that leave a test undone and still count it as passed.
var skips = []string{"Skip", "Skipf", "SkipNow"}

// checkSkips reports calls that skip a test. The programs that a test needs are
// installed, never hoped for.
// Any method of these names counts, whatever it is called on: a wrapper would hide a
// skip.
func checkSkips(t *tree, out *findings) {
	for _, s := range t.sources {
		if !s.forTests() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(skips, sel.Sel.Name) {
				out.add("no-skip", s.path, t.line(call.Pos()), "a test is skipped: install what it needs instead")
			}
			return true
		})
	}
}
