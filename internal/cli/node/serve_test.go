package node_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestServeRefuses checks that serve starts with nothing insecure, and says all
// of it at once.
func TestServeRefuses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := clitest.Run(t, nil, "serve", "--data", data, "--listen", "0.0.0.0:0")
	r.Want(t, 2, "serve refuses to start, 3 settings are wrong", "jwt_secret (not set: --jwt-secret or DIBS_JWT_SECRET)",
		"admin_key (not set: --admin-key or DIBS_ADMIN_KEY)", "listen (flag --listen)", "--behind-proxy")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a refused start left the folder: %v", err)
	}
	clitest.Run(t, []string{"DIBS_JWT_SECRET=" + clitest.Secret[1:], "DIBS_ADMIN_KEY=short"}, "serve", "--data", data).
		Want(t, 2, "2 settings are wrong", "must be at least 32 bytes, this one has 31", "must be 16 to 255 visible characters")
}

// TestServeNeedsNoKeyTwice serves with a key that the ledger has.
func TestServeNeedsNoKeyTwice(t *testing.T) {
	data := t.TempDir()
	r := clitest.Run(t, nil, "key", "create", "--name", "ops", "--data", data, "--output", "json")
	r.Want(t, 0)
	var key dibsKey
	if err := json.Unmarshal([]byte(r.Out), &key); err != nil {
		t.Fatal(err)
	}
	p := clitest.Start(t, clitest.Secrets[:1], "serve", "--data", data, "--listen", "127.0.0.1:0")
	url := p.Await(t, p.Err, `msg=serving url=(\S+)`)[1]
	clitest.Run(t, nil, "campaign", "list", "--url", url, "--admin-key", key.Secret).Want(t, 0, "TITLE")
	r = clitest.Run(t, nil, "key", "revoke", key.ID, "--data", data)
	r.Want(t, 0, "revoked "+key.ID)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	clitest.Run(t, clitest.Secrets[:1], "serve", "--data", data).Want(t, 2, "admin_key (not set", "no API key")
	clitest.Run(t, clitest.Secrets[:1], "serve", "--data", data, "--admin-key", key.Secret).Want(t, 2, "admin_key (flag --admin-key)", "revoked")
}

// TestServeTakesNoDevToken checks that dev's tokens are worth nothing here.
func TestServeTakesNoDevToken(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	req, err := http.NewRequest(http.MethodGet, url+"/v1/me/claims", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer dev_42")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", resp.StatusCode)
	}
}

// TestLedgerElsewhere puts the ledger outside of the data folder.
func TestLedgerElsewhere(t *testing.T) {
	data, ledger := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere", "l.db")
	p, _ := clitest.Serve(t, data, "--ledger", "sqlite:"+ledger)
	if code := p.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if _, err := os.Stat(ledger); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "ledger.db")); !os.IsNotExist(err) {
		t.Errorf("there is a ledger in the data folder too: %v", err)
	}
	clitest.Run(t, nil, "key", "list", "--ledger", "sqlite:"+ledger).Want(t, 0, "serve")
}

// TestServeTLS serves HTTPS on an address that is not loopback's alone.
func TestServeTLS(t *testing.T) {
	cert, key, pool := clitest.Certificate(t)
	p, _ := clitest.Serve(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--listen", "0.0.0.0:0", "--log-format", "text")
	port := p.Await(t, p.Err, `msg=serving url=https://\S+:(\d+) `)[1]
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer web.CloseIdleConnections()
	resp, err := web.Get("https://127.0.0.1:" + port + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}
