package remote_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAbandonShard: a shard that is not lost is not given up, and bad input is refused.
func TestAbandonShard(t *testing.T) {
	env := clitest.Served(t)
	abandon := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, env, append([]string{"campaign", "abandon-shard"}, args...)...)
	}
	abandon("none", "x").Want(t, 2, "SHARD is a number from 0 to 63")
	abandon("none", "64").Want(t, 2, "SHARD is a number from 0 to 63")
	abandon("none").Want(t, 2)
	abandon("none", "0", "--yes").Want(t, 1, "not_found")
}
