package node_test

import (
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestMigrate makes the files, and leaves a running server alone.
func TestMigrate(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	clitest.Run(t, nil, "migrate", "--check", "--data", data).Want(t, 1, "there is no file")
	empty := clitest.WriteFile(t, "empty.db", "")
	clitest.Run(t, clitest.Secrets, "serve", "--data", t.TempDir(), "--ledger", "sqlite:"+empty, "--migrate=false", "--listen", "127.0.0.1:0").Want(t, 1, "dibs migrate")
	clitest.Run(t, nil, "migrate", "--data", data).Want(t, 0, "ledger.db", "journal.db")
	clitest.Run(t, nil, "migrate", "--check", "--data", data, "--ledger", "sqlite:"+empty).Want(t, 1, "empty.db", "not what this version wants")
	clitest.Run(t, nil, "migrate", "--check", "--data", data).Want(t, 0)
	clitest.Serve(t, data, "--migrate=false")
	clitest.Run(t, nil, "migrate", "--data", data).Want(t, 1, "is in use by")
}
