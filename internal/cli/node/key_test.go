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
	clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "reader", "--data", data).Want(t, 2, "must be viewer, editor, publisher or admin")
	r = clitest.Run(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data, "--output", "json")
	r.Want(t, 0, "viewer", "dibs_")
	var eyes dibsKey
	if err := json.Unmarshal([]byte(r.Out), &eyes); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, nil, "campaign", "pause", "x", "--url", url, "--admin-key", eyes.Secret).Want(t, 1, "does not let this admin key do that", "of the role publisher")
}

// TestKeyTerms makes a key with an end and scopes, and one in place of it.
func TestKeyTerms(t *testing.T) {
	data := t.TempDir()
	r := clitest.Run(t, nil, "key", "create", "--name", "till", "--role", "publisher", "--campaign", "phone-*", "--campaign", "tea", "--action", "confirm",
		"--expires", "2160h", "--data", data, "--output", "json")
	r.Want(t, 0, `"campaigns": [`, `"phone-*"`, `"actions": [`, `"expires_at": "20`)
	var key dibsKey
	if err := json.Unmarshal([]byte(r.Out), &key); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, nil, "key", "rotate", key.ID, "--overlap", "1h", "--data", data).Want(t, 0, "till", "publisher", `"campaigns":["phone-*","tea"]`, "secret  dibs_")
	clitest.Run(t, nil, "key", "list", "--data", data).Want(t, 0, "EXPIRES", "LAST USED", key.ID)
	clitest.Run(t, nil, "key", "rotate", key.ID, "--overlap", "9999h", "--data", data).Want(t, 2, "must be from 0s to 720h")
	clitest.Run(t, nil, "key", "rotate", "k-nobody", "--data", data).Want(t, 1, "there is no API key k-nobody")
	clitest.Run(t, nil, "key", "revoke", key.ID, "--data", data, "--output", "json").Want(t, 0, `"id": "`+key.ID+`"`, `"revoked_at"`)
	clitest.Run(t, nil, "key", "rotate", key.ID, "--data", data).Want(t, 1, "not valid any more")
	clitest.Run(t, nil, "key", "create", "--name", "x", "--expires", "-1h", "--data", data).Want(t, 2, "--expires must be in the future")
	// A key with scopes lets nobody administer the server: serve still asks for one.
	clitest.Run(t, clitest.Secrets[:1], "serve", "--data", data).Want(t, 2, "admin_key (not set", "no API key")
}

// TestKeyOfNoLedger: a file that is no ledger is named, with what to do about it.
func TestKeyOfNoLedger(t *testing.T) {
	file := "sqlite:" + clitest.WriteFile(t, "garb.db", strings.Repeat("no ledger ", 1000))
	clitest.Run(t, nil, "key", "list", "--ledger", file).Want(t, 1, "dibs: opening the ledger "+file+": ")
	clitest.Run(t, clitest.Secrets, "doctor", "--ledger", file, "--data", t.TempDir()).Want(t, 1, "look whether the file is that of a ledger")
}

// TestKeyThatCannotBeMade leaves no ledger behind.
func TestKeyThatCannotBeMade(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	clitest.Run(t, nil, "key", "create", "--data", data).Want(t, 2, "name is required")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
