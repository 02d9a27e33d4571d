package tidy

import (
	"strings"
	"testing"
)

// TestSizes finds faults of the sizes of files and functions.
func TestSizes(t *testing.T) {
	find(t, []violation{
		{"Go file too long", file("internal/leaf/long.go", leaf+strings.Repeat("\n", MaxFileLines)), []string{"internal/leaf/long.go:601: 601 lines"}},
		{"last line without newline counts", file("internal/leaf/long.go", leaf+strings.Repeat("\n", MaxFileLines-1)+"//"), []string{"internal/leaf/long.go:601: 601 lines"}},
		{"script too long", file("console/app.js", strings.Repeat("\n", MaxFileLines+1)), []string{"console/app.js:601: 601 lines"}},
		{"function too long", file("internal/leaf/long.go", leaf+"\nfunc long() {"+strings.Repeat("\n", MaxFunctionLines)+"}\n"), []string{"internal/leaf/long.go:3: long has 71 lines"}},
		{"method in a test too long", file("internal/leaf/long_test.go", leaf+"\ntype t struct{}\n\nfunc (t) long() {"+strings.Repeat("\n", MaxFunctionLines)+"}\n"), []string{"internal/leaf/long_test.go:5: long has 71 lines"}},
		{"literal too long", file("internal/leaf/long.go", leaf+"\nvar long = func() {"+strings.Repeat("\n", MaxFunctionLines)+"}\n"), []string{"internal/leaf/long.go:3: function literal has 71 lines"}},
		{"literal inside a literal counts once", file("internal/leaf/long.go", leaf+"\nvar long = func() {\nfunc() {"+strings.Repeat("\n", MaxFunctionLines)+"}()\n}\n"), []string{"internal/leaf/long.go:3: function literal has 73 lines"}},
	})
}
