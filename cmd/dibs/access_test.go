package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
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

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.After(2 * time.Minute)
	for !met() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("after two minutes: not %s", what)
		}
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
	cert, key, pool := makeCertificate(t)
	nextCert, nextKey, nextPool := makeCertificate(t)
	file := writeFile(t, "secrets.txt", "# the users' tokens\n"+first+"\n")
	p := start(t, secrets[1:], "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
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
		{url + "/v1/products", testKey, 404},
		{url + "/metrics", "", 404},
		{url + "/debug/pprof/", "", 404},
		{admin + "/v1/products", testKey, 200},
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
	replace(t, file, writeFile(t, "short.txt", "short\n"))
	p.signal(t, syscall.SIGHUP)
	p.await(t, p.err, `cannot be used.*line 1 has 5 bytes`)
	if status, err := ask(url+"/v1/me/claims", sign(first)); err != nil || status != 200 {
		t.Errorf("with secrets that cannot be used: %d, %v", status, err)
	}
	replace(t, file, writeFile(t, "next.txt", second+"\n"))
	replace(t, cert, nextCert)
	replace(t, key, nextKey)
	p.signal(t, syscall.SIGHUP)
	askNext := caller(t, nextPool)
	until(t, "served with the next certificate", func() bool {
		status, err := askNext(url+"/healthz", "")
		return err == nil && status == 200
	})
	until(t, "without the first secret", func() bool {
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

// TestKeyRoles makes a key that may only read, and finds it in the audit log.
func TestKeyRoles(t *testing.T) {
	data := t.TempDir()
	execute(t, nil, "key", "create", "--name", "eyes", "--role", "reader", "--data", data).want(t, 2, "must be viewer or editor")
	r := execute(t, nil, "key", "create", "--name", "eyes", "--role", "viewer", "--data", data)
	r.want(t, 0, "viewer", "dibs_")
	_, url := startServe(t, data)
	execute(t, secrets, "audit", "list", "--url", url).want(t, 0, "create-key", "the command line on")
	execute(t, secrets, "audit", "list", "--url", url, "--action", "none", "--output", "json").want(t, 0, "[]")
	execute(t, secrets, "audit", "list", "--url", url, "--since", "yesterday").want(t, 2, "--since")
}

// TestAudienceVerbs imports a list, and is told what is wrong with another.
func TestAudienceVerbs(t *testing.T) {
	_, url := startServe(t, t.TempDir())
	execute(t, secrets, "audience", "import", "vip", writeFile(t, "bad.csv", "user\n42\n4 2\n"), "--url", url).want(t, 1, ": line 3 is no user")
	execute(t, secrets, "audience", "show", "vip", "--url", url).want(t, 1, "no list of users vip")
	execute(t, secrets, "audience", "import", "vip", writeFile(t, "good.csv", "user\n42\n43\n42\n"), "--url", url).want(t, 0, "users", "2", "duplicates")
	execute(t, secrets, "audience", "list", "--url", url, "--output", "json").want(t, 0, `"id": "vip"`, `"users": 2`)
	execute(t, secrets, "audience", "import", "vip", "none.csv", "--url", url).want(t, 2, "none.csv")
}

// A voucher of the human check must not pass as a user's token: their secrets differ.
func TestHumanSecret(t *testing.T) {
	const other = "a secret of the check, 32 bytes and more"
	file := writeFile(t, "secrets.txt", other+"\n")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"short":               {[]string{"--human-secret", "short"}, "human_secret (flag --human-secret): must be at least 32 bytes, this one has 5"},
		"that of the tokens":  {[]string{"--human-secret", testSecret}, "human_secret (flag --human-secret): must be another secret than those of users' tokens"},
		"one of the file's":   {[]string{"--human-secret", other, "--jwt-secret-file", file}, "human_secret (flag --human-secret): must be another secret"},
		"a file not readable": {[]string{"--human-secret", other, "--jwt-secret-file", file + "x"}, "jwt_secret_file (flag --jwt-secret-file): cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			r := execute(t, secrets, append([]string{"config", "check"}, c.args...)...)
			r.want(t, 2, "1 setting is wrong", c.want)
			if strings.Contains(r.err, testSecret) || strings.Contains(r.err, other) {
				t.Errorf("a secret is told:\n%s", r.err)
			}
		})
	}
	execute(t, secrets, "config", "check", "--human-secret", other).want(t, 0, "the settings are good")
}
