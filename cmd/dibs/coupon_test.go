package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCouponImport brings a batch of codes in, from the outside.
func TestCouponImport(t *testing.T) {
	env := served(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	execute(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--import", "--units", "5", "--ends", "+1h").
		want(t, 2, "give one stock")
	execute(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--import", "--ends", "+1h").want(t, 0, "0 items")
	execute(t, env, "campaign", "publish", "spring").want(t, 1, "import its codes")
	var codes strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&codes, "SPRING-%05d\r\n", i)
	}
	good := file("codes.csv", "code\r\n"+codes.String())
	execute(t, env, "coupon", "import", "spring", good, "--key", "batch-1").want(t, 0, "imported", "12000")
	execute(t, env, "coupon", "import", "spring", good, "--key", "batch-1").want(t, 0, "nothing changed")
	execute(t, env, "coupon", "import", "spring", good).want(t, 1, ": line 2 is in the campaign already")
	execute(t, env, "coupon", "import", "spring", file("bad.csv", "A1\nA2,B2\nA1\n")).want(t, 1, ": line 2 must be one code")
	execute(t, env, "coupon", "import", "spring", file("twice.csv", "A1\nA2\nA1\n")).want(t, 1, ": line 3 is the same as line 1")
	execute(t, env, "coupon", "import", "spring", filepath.Join(dir, "none.csv")).want(t, 2, "none.csv")
	execute(t, env, "coupon", "import", "nothing", good).want(t, 1, "not_found")
	execute(t, env, "campaign", "publish", "spring").want(t, 0, "12000 items")

	// What is left comes back out, and goes into another campaign as it is.
	r := execute(t, env, "coupon", "export", "spring")
	r.want(t, 0)
	if want := "code\n" + strings.ReplaceAll(codes.String(), "\r", ""); r.out != want {
		t.Errorf("the export has %d bytes, and not %d", len(r.out), len(want))
	}
	execute(t, env, "campaign", "create", "--id", "again", "--kind", "coupon", "--title", "Again", "--import", "--ends", "+1h").want(t, 0)
	execute(t, env, "coupon", "import", "again", file("left.csv", r.out)).want(t, 0, "12000")
	execute(t, env, "coupon", "export", "nothing").want(t, 1, "not_found")
}
