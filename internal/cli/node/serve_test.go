package node_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	clitest.Run(t, clitest.Secrets[:1], "serve", "--data", data, "--listen", "127.0.0.1:0").Want(t, 2, "admin_key (not set", "no API key")
	clitest.Run(t, clitest.Secrets[:1], "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-key", key.Secret).Want(t, 2, "admin_key (flag --admin-key)", "revoked")
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
	if resp.Header.Get("Strict-Transport-Security") == "" {
		t.Error("browsers are not told to stay with HTTPS")
	}
	// Others reach this address: what is not for them has another one.
	admin := p.Await(t, p.Err, `admin_url=(https://127\.0\.0\.1:\d+)`)[1]
	for address, want := range map[string]int{
		"https://127.0.0.1:" + port + "/metrics": 404, "https://127.0.0.1:" + port + "/v1/products": 404, admin + "/metrics": 200, admin + "/v1/products": 200,
	} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+clitest.Key)
		resp, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", address, resp.StatusCode, want)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServeClientCertificates: the address for administrators takes certificates of the authority
// alone, the one for users asks for none; a certificate does not stand in for a key.
func TestServeClientCertificates(t *testing.T) {
	cert, key, pool := clitest.Certificate(t)
	mine, mineKey, _ := clitest.Certificate(t)
	other, otherKey, _ := clitest.Certificate(t)
	p, url := clitest.Serve(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--admin-listen", "127.0.0.1:0", "--admin-client-ca", mine, "--log-format", "text")
	admin := p.Await(t, p.Err, `admin_url=(https://127\.0\.0\.1:\d+)`)[1]
	ask := func(address, cert, certKey, secret string) (status int, err error) {
		t.Helper()
		way := &tls.Config{RootCAs: pool}
		if cert != "" {
			pair, err := tls.LoadX509KeyPair(cert, certKey)
			if err != nil {
				t.Fatal(err)
			}
			way.Certificates = []tls.Certificate{pair}
		}
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: way}}
		defer web.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/products", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := web.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	for _, c := range []struct {
		name, address, cert, key, secret string
		status                           int
	}{
		{"no certificate", admin, "", "", clitest.Key, 0},
		{"another authority's", admin, other, otherKey, clitest.Key, 0},
		{"the right one", admin, mine, mineKey, clitest.Key, 200},
		{"the right one without a key", admin, mine, mineKey, "dibs_no_such_key_0123456789", 401},
		{"users need none", url, "", "", clitest.Key, 404},
	} {
		status, err := ask(c.address, c.cert, c.key, c.secret)
		if status != c.status || (err != nil) != (c.status == 0) {
			t.Errorf("%s: %d, %v, want %d", c.name, status, err, c.status)
		}
	}
	verb := []string{"product", "list", "--url", admin, "--server-ca", cert}
	clitest.Run(t, clitest.Secrets, verb...).Want(t, 1, "certificate")
	clitest.Run(t, clitest.Secrets, append(verb, "--client-cert", mine, "--client-key", mineKey)...).Want(t, 0)
	clitest.Run(t, clitest.Secrets, append(verb, "--client-cert", mine)...).Want(t, 2, "client_cert (flag --client-cert): cannot be used with client_key")
}

// TestServeEndsConnections: a connection to the address for administrators ends soon after its client certificate's
// authority was taken out of the file, without a call over it.
func TestServeEndsConnections(t *testing.T) {
	cert, key, pool := clitest.Certificate(t)
	mine, mineKey, _ := clitest.Certificate(t)
	other, _, _ := clitest.Certificate(t)
	pair, err := tls.LoadX509KeyPair(mine, mineKey)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := clitest.Serve(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--admin-listen", "127.0.0.1:0", "--admin-client-ca", mine, "--log-format", "text")
	admin := p.Await(t, p.Err, `admin_url=https://(127\.0\.0\.1:\d+)`)[1]
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}).DialContext(t.Context(), "tcp", admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// The answer of a call is read, so that the handshake is over on both sides.
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 200"))); err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, authorities, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Await(t, p.Err, `a connection of an administrator was ended`)
	// Beginning with the rest of the answer.
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}
