package node_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestRenewKeysWhileRunning: after the verb a session of the console ends on a server that runs on, and the next sign-in
// is good: no restart is needed.
func TestRenewKeysWhileRunning(t *testing.T) {
	data := t.TempDir()
	p, url := clitest.Serve(t, data)
	signIn := func() *http.Cookie {
		t.Helper()
		resp, err := http.Post(url+"/v1/session", "application/json", strings.NewReader(`{"key":"`+clitest.Key+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
			t.Fatalf("signing in: %s, %v", resp.Status, err)
		}
		return resp.Cookies()[0]
	}
	status := func(session *http.Cookie) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	before := signIn()
	if got := status(before); got != http.StatusOK {
		t.Fatalf("a session has the status %d", got)
	}
	clitest.Run(t, nil, "ledger", "renew-keys", "--data", data).Want(t, 0, "renewed  3")
	clitest.Until(t, "the session ends", func() bool { return status(before) == http.StatusUnauthorized })
	if got := status(signIn()); got != http.StatusOK {
		t.Errorf("a session of the new key has the status %d", got)
	}
	p.Await(t, p.Err, `a key of the ledger was made anew, and is in use" key=session`)
}

// TestAdminKeyFileIsReadAgain: a key that is written into the file of a server that runs is good soon, beside the one
// before, which goes by being revoked; a weak one is refused, and so is one that was revoked.
func TestAdminKeyFileIsReadAgain(t *testing.T) {
	const first, second = "the-first-admin-key-0123456789", "the-second-admin-key-987654321"
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first)
	p := clitest.Start(t, []string{"DIBS_JWT_SECRET=" + clitest.Secret, "DIBS_ADMIN_KEY_FILE=" + file}, "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	url := p.Await(t, p.Err, `msg=serving url=(\S+)`)[1]
	as := func(key string) *client.Client {
		t.Helper()
		c, err := client.New(url, client.Options{AdminKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	takes := func(key string) bool {
		_, err := as(key).Keys.List(t.Context(), dibs.Page{})
		return err == nil
	}
	if !takes(first) || takes(second) {
		t.Fatal("the keys at the start")
	}
	write(second)
	clitest.Until(t, "the second key is good", func() bool { return takes(second) })
	if !takes(first) {
		t.Error("the first key went without being revoked")
	}
	write(strings.Repeat("a", 30))
	p.Await(t, p.Err, `cannot be used.*what="admin key" err=.*must have at least 6 different characters`)
	if takes(strings.Repeat("a", 30)) || !takes(second) {
		t.Error("a weak key is taken, or the one before is not")
	}
	keys, err := as(second).Keys.List(t.Context(), dibs.Page{})
	if err != nil || len(keys.Items) != 2 {
		t.Fatalf("%+v, %v", keys, err)
	}
	// The newest one comes first.
	if _, err := as(second).Keys.Revoke(t.Context(), keys.Items[1].ID); err != nil {
		t.Fatal(err)
	}
	write(first)
	p.Await(t, p.Err, `cannot be used.*what="admin key" err=.*this admin key was revoked`)
	if takes(first) || !takes(second) {
		t.Error("a key that was revoked came back")
	}
}
