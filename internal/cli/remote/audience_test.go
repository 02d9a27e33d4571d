package remote_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAudienceVerbs imports a list, and is told what is wrong with another.
func TestAudienceVerbs(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	clitest.Run(t, clitest.Secrets, "audience", "import", "vip", clitest.WriteFile(t, "bad.csv", "user\n42\n4 2\n"), "--url", url).Want(t, 1, ": line 3 is no user")
	clitest.Run(t, clitest.Secrets, "audience", "show", "vip", "--url", url).Want(t, 1, "no list of users vip")
	clitest.Run(t, clitest.Secrets, "audience", "import", "vip", clitest.WriteFile(t, "good.csv", "user\n42\n43\n42\n"), "--url", url).Want(t, 0, "users", "2", "duplicates")
	clitest.Run(t, clitest.Secrets, "audience", "list", "--url", url, "--output", "json").Want(t, 0, `"id": "vip"`, `"users": 2`)
	// A file without users empties no list by accident.
	for _, text := range []string{"", "user\n", "\ufeffuser_id\r\n\r\n"} {
		clitest.Run(t, clitest.Secrets, "audience", "import", "vip", clitest.WriteFile(t, "empty.csv", text), "--url", url).Want(t, 2, "empty.csv: the file has no users")
	}
	clitest.Run(t, clitest.Secrets, "audience", "show", "vip", "--url", url, "--output", "json").Want(t, 0, `"users": 2`)
	clitest.Run(t, clitest.Secrets, "audience", "import", "vip", clitest.WriteFile(t, "empty.csv", "user\n"), "--empty", "--url", url, "--output", "json").Want(t, 0, `"users": 0`)
	clitest.Run(t, clitest.Secrets, "audience", "import", "vip", "none.csv", "--url", url).Want(t, 2, "none.csv")
}
