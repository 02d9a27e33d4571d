package tidy

import (
	"testing"
)

// TestCommentNames finds comments that kept a name which the code has given up.
func TestCommentNames(t *testing.T) {
	find(t, []violation{
		{"function under its former name", file("lock/a.go", "package lock\n\n// take takes.\nfunc takeAll() {}\n"), []string{"lock/a.go:3: the comment of takeAll begins with take"}},
		{"constant under its former name", file("lock/a.go", "package lock\n\nconst (\n\t// maxHeld is a bound.\n\tmaxTaken = 1\n)\n"), []string{"lock/a.go:4: the comment of maxTaken begins with maxHeld"}},
		{"one of two names", file("lock/a.go", "package lock\n\n// b is less than a.\nconst a, b = 2, 1\n"), nil},
		{"method under its former name", file("lock/a.go", "package lock\n\n// T is T.\ntype T interface {\n\t// Takes takes.\n\tHold()\n\t// Give gives.\n\tGive()\n}\n"), []string{"lock/a.go:5: the comment of Hold begins with Takes"}},
		{"name that its package does not have", file("lock/a.go", "package lock\n\n// F is as house.Open and fmt.Nothing are.\nfunc f() {\n\t// See house.Close.\n}\n"), []string{"lock/a.go:5: house.Close does not exist"}},
	})
}
