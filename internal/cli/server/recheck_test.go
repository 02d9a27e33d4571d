package server

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/web"
)

// TestRevokedOnOpenConnections: a client certificate that is revoked while its connection is open gets nothing more over
// it, and the connection is closed; others go on with theirs.
func TestRevokedOnOpenConnections(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	ca, caKey := authority(t, "an authority")
	file := filepath.Join(dir, "authorities.pem")
	write := func(blocks ...[]byte) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Join(append([][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})}, blocks...), nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	cs, err := openCertificates(&config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), AdminClientCA: file})
	if err != nil {
		t.Fatal(err)
	}
	respond, err := web.NewResponder(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(cs.recheck(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}), respond))
	server.Config.TLSConfig = cs.adminConfig()
	ln := server.Listener
	go func() { _ = server.Config.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { _ = server.Config.Close() })
	client := func(serial int64) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{ //nolint:gosec // the server is the one under test
			InsecureSkipVerify: true, Certificates: []tls.Certificate{clientPair(t, ca, caKey, serial)},
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	get := func(c *http.Client) (status int, body string, closes bool) {
		t.Helper()
		resp, err := c.Get("https://" + ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw), resp.Close
	}
	good, lost := client(7), client(8)
	_, first, _ := get(good)
	if status, body, _ := get(lost); status != 200 {
		t.Fatalf("without a list: %d %s", status, body)
	}
	write(revocations(t, ca, caKey, time.Now().Add(time.Hour)))
	if err := cs.loadClients(); err != nil {
		t.Fatal(err)
	}
	if status, body, closes := get(lost); status != 403 || !closes || !bytes.Contains([]byte(body), []byte("revoked")) {
		t.Errorf("the revoked one: %d %s, closes %t", status, body, closes)
	}
	if status, body, closes := get(good); status != 200 || body != first || closes {
		t.Errorf("the other one: %d %s, before %s, closes %t", status, body, first, closes)
	}
	if _, err := lost.Get("https://" + ln.Addr().String()); err == nil {
		t.Error("the revoked one connects again")
	}
}
