package remote_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestCouponImport brings a batch of codes in, from the outside.
func TestCouponImport(t *testing.T) {
	env := clitest.Served(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clitest.Run(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--import", "--units", "5", "--ends", "+1h").
		Want(t, 2, "give one stock")
	clitest.Run(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--import", "--ends", "+1h").Want(t, 0, "0 items")
	clitest.Run(t, env, "campaign", "publish", "spring").Want(t, 1, "import its codes")
	var codes strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&codes, "SPRING-%05d\r\n", i)
	}
	good := file("codes.csv", "code\r\n"+codes.String())
	clitest.Run(t, env, "coupon", "import", "spring", good, "--key", "batch-1").Want(t, 0, "imported", "12,000")
	clitest.Run(t, env, "coupon", "import", "spring", good, "--key", "batch-1").Want(t, 0, "nothing changed")
	clitest.Run(t, env, "coupon", "import", "spring", good).Want(t, 1, ": line 2 is in the campaign already")
	clitest.Run(t, env, "coupon", "import", "spring", file("bad.csv", "A1\nA2,B2\nA1\n")).Want(t, 1, ": line 2 must be one code")
	clitest.Run(t, env, "coupon", "import", "spring", file("twice.csv", "A1\nA2\nA1\n")).Want(t, 1, ": line 3 is the same as line 1")
	clitest.Run(t, env, "coupon", "import", "spring", filepath.Join(dir, "none.csv")).Want(t, 2, "none.csv")
	clitest.Run(t, env, "coupon", "import", "nothing", good).Want(t, 1, "not_found")
	clitest.Run(t, env, "campaign", "publish", "spring").Want(t, 0, "12,000 items")

	// What is left comes back out, and goes into another campaign as it is.
	r := clitest.Run(t, env, "coupon", "export", "spring")
	r.Want(t, 0)
	if want := "code\n" + strings.ReplaceAll(codes.String(), "\r", ""); r.Out != want {
		t.Errorf("the export has %d bytes, and not %d", len(r.Out), len(want))
	}
	clitest.Run(t, env, "campaign", "create", "--id", "again", "--kind", "coupon", "--title", "Again", "--import", "--ends", "+1h").Want(t, 0)
	clitest.Run(t, env, "coupon", "import", "again", file("left.csv", r.Out)).Want(t, 0, "12,000")
	clitest.Run(t, env, "coupon", "export", "nothing").Want(t, 1, "not_found")
}
