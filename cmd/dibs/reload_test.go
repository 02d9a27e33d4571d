package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// caller asks a server by HTTPS whose certificate is in a pool.
func caller(t *testing.T, pool *x509.CertPool) func(url, token string) (int, error) {
	t.Helper()
	web := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
	}
	t.Cleanup(web.CloseIdleConnections)
	return func(url, token string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := web.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
}

// replace gives a file another content.
func replace(t *testing.T, path, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestServeApart serves administrators at an address of their own, and takes
// another certificate and other secrets without a restart.
func TestServeApart(t *testing.T) {
	const first, second = "the first secret, of thirty-two bytes", "the second secret, of 32 bytes and more"
	cert, key, pool := clitest.Certificate(t)
	nextCert, nextKey, nextPool := clitest.Certificate(t)
	file := clitest.WriteFile(t, "secrets.txt", "# the users' tokens\n"+first+"\n")
	p := start(t, clitest.Secrets[1:], "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key, "--jwt-secret-file", file)
	url := p.await(t, p.err, `msg=serving url=(\S+)`)[1]
	admin := p.await(t, p.err, `admin_url=(\S+)`)[1]
	sign := func(secret string) string {
		token, err := httpapi.IssueToken([]byte(secret), "42", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ask := caller(t, pool)
	for _, c := range []struct {
		url, token string
		status     int
	}{
		{url + "/v1/me/claims", sign(first), 200},
		{url + "/v1/me/claims", sign(second), 401},
		{url + "/v1/products", clitest.Key, 404},
		{url + "/metrics", "", 404},
		{url + "/debug/pprof/", "", 404},
		{admin + "/v1/products", clitest.Key, 200},
		{admin + "/v1/products", sign(first), 403},
		{admin + "/metrics", "", 200},
		{admin + "/debug/pprof/", "", 200},
		{admin + "/debug/pprof/cmdline", "", 404},
	} {
		if status, err := ask(c.url, c.token); err != nil || status != c.status {
			t.Errorf("%s: %d, want %d: %v", c.url, status, c.status, err)
		}
	}
	// A file that cannot be used changes nothing.
	replace(t, file, clitest.WriteFile(t, "short.txt", "short\n"))
	p.signal(t, syscall.SIGHUP)
	p.await(t, p.err, `cannot be used.*line 1 has 5 bytes`)
	if status, err := ask(url+"/v1/me/claims", sign(first)); err != nil || status != 200 {
		t.Errorf("with secrets that cannot be used: %d, %v", status, err)
	}
	replace(t, file, clitest.WriteFile(t, "next.txt", second+"\n"))
	replace(t, cert, nextCert)
	replace(t, key, nextKey)
	p.signal(t, syscall.SIGHUP)
	askNext := caller(t, nextPool)
	clitest.Until(t, "served with the next certificate", func() bool {
		status, err := askNext(url+"/healthz", "")
		return err == nil && status == 200
	})
	clitest.Until(t, "without the first secret", func() bool {
		status, err := askNext(url+"/v1/me/claims", sign(first))
		return err == nil && status == 401
	})
	if status, err := askNext(url+"/v1/me/claims", sign(second)); err != nil || status != 200 {
		t.Errorf("with the second secret: %d, %v", status, err)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestListsChange changes the file of lists: it takes effect without a restart, and a
// file with a fault changes nothing.
func TestListsChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lists")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("block device farm\n")
	p, url := startServe(t, t.TempDir(), "--lists-file", file)
	clitest.Publish(t, clitest.Admin(t, url), "phone", 10)
	user, err := httpapi.IssueToken([]byte(clitest.Secret), "42", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	answers := func(status int) {
		t.Helper()
		clitest.Until(t, "answered with "+http.StatusText(status), func() bool {
			return ask(t, http.MethodPost, url+"/v1/campaigns/phone/claims", user, "") == status
		})
	}
	answers(http.StatusCreated)
	write("block\t127.0.0.0/8\n")
	p.signal(t, syscall.SIGHUP)
	answers(http.StatusForbidden)
	write("block 127.0.0.0/8\nblock nobody in particular\n")
	p.signal(t, syscall.SIGHUP)
	p.await(t, p.err, `cannot be used; the earlier content stays in effect.*line 2 must be block or allow`)
	answers(http.StatusForbidden)
	write("")
	p.signal(t, syscall.SIGHUP)
	answers(http.StatusConflict)
}
