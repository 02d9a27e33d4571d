package tidy

import (
	"testing"
)

// TestTestsThatWait finds faults of the tests that wait by the clock or are skipped.
func TestTestsThatWait(t *testing.T) {
	find(t, []violation{
		{"sleep in a test", file("lock/a_test.go", "package lock\n\nimport \"time\"\n\nfunc f() { time."+sleep+"(1) }\n"), []string{"lock/a_test.go:5: a test sleeps"}},
		{"sleep under another name", file("lock/a_test.go", "package lock\n\nimport clock \"time\"\n\nvar f = clock."+sleep+"\n"), []string{"lock/a_test.go:5: a test sleeps"}},
		{"sleep in a suite", file("lock/suite.go", "package lock\n\nimport (\n\t_ \"testing\"\n\t\"time\"\n)\n\nvar f = time."+sleep+"\n"), []string{"lock/suite.go:8: a test sleeps"}},
		{"skip", file("lock/a_test.go", "package lock\n\nfunc f(t T) {\n\tt."+skip+"(1)\n\tt."+skip+"f(1)\n\tt."+skip+"Now()\n}\n"), []string{"lock/a_test.go:4: a test is skipped", "lock/a_test.go:5: a test is skipped", "lock/a_test.go:6: a test is skipped"}},
	})
}
