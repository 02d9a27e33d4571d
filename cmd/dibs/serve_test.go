package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	nodepkg "github.com/dibs-dev/dibs/internal/cli/node"
)

// TestServeRefuses checks that serve starts with nothing insecure, and says all
// of it at once.
func TestServeRefuses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := execute(t, nil, "serve", "--data", data, "--listen", "0.0.0.0:0")
	r.want(t, 2, "serve refuses to start, 3 settings are wrong", "jwt_secret (not set: --jwt-secret or DIBS_JWT_SECRET)",
		"admin_key (not set: --admin-key or DIBS_ADMIN_KEY)", "listen (flag --listen)", "--behind-proxy")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a refused start left the folder: %v", err)
	}
	execute(t, []string{"DIBS_JWT_SECRET=" + testSecret[1:], "DIBS_ADMIN_KEY=short"}, "serve", "--data", data).
		want(t, 2, "2 settings are wrong", "must be at least 32 bytes, this one has 31", "must be 16 to 255 visible characters")
}

// TestServeNeedsNoKeyTwice serves with a key that the ledger has.
func TestServeNeedsNoKeyTwice(t *testing.T) {
	data := t.TempDir()
	r := execute(t, nil, "key", "create", "--name", "ops", "--data", data, "--output", "json")
	r.want(t, 0)
	var key nodepkg.KeyView
	if err := json.Unmarshal([]byte(r.out), &key); err != nil {
		t.Fatal(err)
	}
	p := start(t, secrets[:1], "serve", "--data", data, "--listen", "127.0.0.1:0")
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	execute(t, nil, "campaign", "list", "--url", url, "--admin-key", key.Secret).want(t, 0, "TITLE")
	r = execute(t, nil, "key", "revoke", key.ID, "--data", data)
	r.want(t, 0, "revoked "+key.ID)
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	execute(t, secrets[:1], "serve", "--data", data).want(t, 2, "admin_key (not set", "no API key")
	execute(t, secrets[:1], "serve", "--data", data, "--admin-key", key.Secret).want(t, 2, "admin_key (flag --admin-key)", "revoked")
}

// TestServeTakesNoDevToken checks that dev's tokens are worth nothing here.
func TestServeTakesNoDevToken(t *testing.T) {
	_, url := startServe(t, t.TempDir())
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

// TestOneProcessPerFolder starts a second process on a folder in use.
func TestOneProcessPerFolder(t *testing.T) {
	data := t.TempDir()
	p, url := startServe(t, data)
	owner := fmt.Sprintf("dibs: the data folder %s is in use by process %d on ", data, p.cmd.Process.Pid)
	for _, second := range []struct {
		what string
		r    result
		hint string
	}{
		{"serve", execute(t, secrets, "serve", "--data", data, "--listen", "127.0.0.1:0"), "--data"},
		{"dev", execute(t, nil, "dev", "--data", data, "--listen", "127.0.0.1:0"), "--data"},
		{"verify", execute(t, nil, "verify", "--data", data), "--url"},
	} {
		second.r.want(t, 1, owner, second.hint)
		if strings.Count(second.r.err, "\n") != 1 {
			t.Errorf("%s says more than a line:\n%s", second.what, second.r.err)
		}
	}
	execute(t, secrets, "verify", "--url", url).want(t, 0, "every promise holds")
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	execute(t, nil, "verify", "--data", data).want(t, 0, "every promise holds")
}

// TestLedgerElsewhere puts the ledger outside of the data folder.
func TestLedgerElsewhere(t *testing.T) {
	data, ledger := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere", "l.db")
	p, _ := startServe(t, data, "--ledger", "sqlite:"+ledger)
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if _, err := os.Stat(ledger); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "ledger.db")); !os.IsNotExist(err) {
		t.Errorf("there is a ledger in the data folder too: %v", err)
	}
	execute(t, nil, "key", "list", "--ledger", "sqlite:"+ledger).want(t, 0, "serve")
}

// TestSecondSignal ends a server at once that waits for a request.
func TestSecondSignal(t *testing.T) {
	p, url := startServe(t, t.TempDir(), "--drain", "5m")
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The server asks for the body, so the request is under way; it never comes.
	fmt.Fprintf(conn, "POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", testKey)
	asked := make([]byte, len("HTTP/1.1 100"))
	if _, err := conn.Read(asked); err != nil || string(asked) != "HTTP/1.1 100" {
		t.Fatalf("%q, %v", asked, err)
	}
	p.signal(t, syscall.SIGTERM)
	p.await(t, p.err, "msg=\"stopping")
	// A signal right behind the first is taken for the same one, so this one
	// is sent until the process is gone.
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		again := time.NewTicker(sameSignal / 2)
		defer again.Stop()
		for {
			select {
			case <-gone:
				return
			case <-again.C:
				_ = p.cmd.Process.Signal(syscall.SIGTERM)
			}
		}
	}()
	if code := p.code(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(p.err.String(), "dibs: stopped at once by a second signal\n") {
		t.Errorf("says nothing of it:\n%s", p.err)
	}
}

// TestServeTLS serves HTTPS on an address that is not loopback's alone.
func TestServeTLS(t *testing.T) {
	cert, key, pool := makeCertificate(t)
	p, _ := startServe(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--listen", "0.0.0.0:0", "--log-format", "text")
	port := p.await(t, p.err, `msg=serving url=https://\S+:(\d+) `)[1]
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

// makeCertificate writes a certificate for 127.0.0.1 and its key.
func makeCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var certPEM, keyPEM bytes.Buffer
	if err := pem.Encode(&certPEM, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	if err := pem.Encode(&keyPEM, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM.Bytes())
	return writeFile(t, "cert.pem", certPEM.String()), writeFile(t, "key.pem", keyPEM.String()), pool
}
