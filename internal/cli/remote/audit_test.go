package remote_test

import (
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAuditList finds what the command line did, and searches.
func TestAuditList(t *testing.T) {
	data := t.TempDir()
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data).Want(t, 0)
	_, url := clitest.Serve(t, data)
	list := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, clitest.Secrets, append([]string{"audit", "list", "--url", url}, args...)...)
	}
	list().Want(t, 0, "create-key", "the command line on")
	list("--action", "create-key", "--since", "-1h", "--output", "json").Want(t, 0, `"action": "create-key"`)
	list("--action", "none", "--output", "json").Want(t, 0, "[]")
	list("--until", "-1h", "--output", "json").Want(t, 0, "[]")
	list("--since", "yesterday").Want(t, 2, "--since")
	list("--limit", "0").Want(t, 2, "--limit must be at least 1")
}
