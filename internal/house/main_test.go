package main

import (
	"strings"
	"testing"
)

// printed runs the program in a module and returns what it prints.
func printed(t *testing.T, b built, args ...string) (string, error) {
	t.Helper()
	t.Chdir(b.write(t))
	var out strings.Builder
	err := run(t.Context(), args, &out)
	return out.String(), err
}

func TestPackageIsShown(t *testing.T) {
	b := built{}.files("lab", 3, ring(3)).file("lab/t.go", "type base struct{}\n\nfunc (base) M() {}\n\ntype T struct{ base }\n")
	out, err := printed(t, b, "-package", "./lab", "-edges", "1", "-promoted")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"package lab: 4 files, 1 exported names\n",
		"f1.go  6      3         yes   1      1\n",
		"T      type  1        1         t.go\n",
		"GROUP of 3 files", "1 of 3 uses go uphill, over 1 edges", "(3 in all)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestBrokenPackageIsShown(t *testing.T) {
	out, err := printed(t, built{}.file("lab/l.go", "var a int = true\n"), "-package", "./lab")
	if err != nil || !strings.HasPrefix(out, "does not compile, so that uses are missing: ") {
		t.Errorf("error %v, printed %q", err, out)
	}
}

// TestMeasuresAreShown runs the program on a house in which all limits are kept
// but one.
func TestMeasuresAreShown(t *testing.T) {
	out, err := printed(t, built{}.files("unknown", 41, nothing))
	if err == nil || !strings.Contains(err.Error(), "unknown: 41 files: the limit is 40") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"unknown                 41! ", "in 45 files of 5 packages", "without a place in the layers: unknown\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"more"}, "unknown argument more"},
		{[]string{"-unknown"}, "flag provided but not defined"},
		{[]string{"-package", "./gone"}, "./gone"},
	} {
		if _, err := printed(t, built{}, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}
