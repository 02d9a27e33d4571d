package node_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// dibsKey is a key as key create shows it.
type dibsKey struct{ ID, Name, Role, Secret string }

// TestKeys makes, lists and revokes keys beside a running server.
func TestKeys(t *testing.T) {
	data := t.TempDir()
	clitest.Run(t, nil, "key", "list", "--data", data).Want(t, 1, "there is no ledger")
	_, url := clitest.Serve(t, data)
	create := func(name string) dibsKey {
		t.Helper()
		r := clitest.Run(t, nil, "key", "create", "--name", name, "--data", data, "--output", "json")
		r.Want(t, 0)
		var v dibsKey
		if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	kept, revoked := create("kept"), create("revoked")
	if !strings.HasPrefix(kept.Secret, "dibs_") || len(kept.Secret) < 37 || kept.Secret == revoked.Secret {
		t.Errorf("the secrets %q and %q", kept.Secret, revoked.Secret)
	}
	clitest.Run(t, nil, "key", "create", "--name", "seen", "--data", data).Want(t, 0, "secret  dibs_", "shown only now")
	clitest.Run(t, nil, "key", "revoke", revoked.ID, "--data", data).Want(t, 0)
	clitest.Run(t, nil, "campaign", "list", "--url", url, "--admin-key", kept.Secret).Want(t, 0)
	clitest.Run(t, nil, "campaign", "list", "--url", url, "--admin-key", revoked.Secret).Want(t, 1, "does not take this admin key")
	r := clitest.Run(t, nil, "key", "list", "--data", data)
	r.Want(t, 0, kept.ID, revoked.ID, "serve")
	if strings.Contains(r.Out, "dibs_") {
		t.Errorf("the list shows secrets:\n%s", r.Out)
	}
	clitest.Run(t, nil, "key", "revoke", "k-nobody", "--data", data).Want(t, 1, "There is no API key k-nobody")
	clitest.Run(t, nil, "key", "create", "--data", data).Want(t, 2, "name is required")
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "reader", "--data", data).Want(t, 2, "must be viewer or editor")
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data).Want(t, 0, "viewer", "dibs_")
}

// TestKeyThatCannotBeMade leaves no ledger behind.
func TestKeyThatCannotBeMade(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	clitest.Run(t, nil, "key", "create", "--data", data).Want(t, 2, "name is required")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
