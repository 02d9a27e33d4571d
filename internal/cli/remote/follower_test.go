package remote_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestFollowers imports followers, lists and counts them.
func TestFollowers(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	verb := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, clitest.Secrets, append(args, "--url", url)...)
	}
	verb("follower", "import", clitest.WriteFile(t, "bad.csv", "user,rank\n42,1\n43,x\n"), "--merchant", "shop").Want(t, 1, ": line 3 is no follower")
	verb("follower", "count", "--merchant", "shop").Want(t, 0, "followers", "0")
	verb("follower", "import", clitest.WriteFile(t, "good.csv", "user,rank\n42,1\n43,5\n44\n"), "--merchant", "shop").Want(t, 0, "imported", "3")
	verb("follower", "import", "none.csv").Want(t, 2, "--merchant is required")
	verb("follower", "list", "--merchant", "shop", "--output", "json").Want(t, 0, `"user": "43"`)
	verb("follower", "list", "--merchant", "shop", "--limit", "1").Want(t, 0, "USER  RANK  SINCE\n43    5     20")
	verb("follower", "count", "--merchant", "shop", "--output", "json").Want(t, 0, "{\n  \"followers\": 3,\n  \"id\": \"shop\"\n}\n")
}
