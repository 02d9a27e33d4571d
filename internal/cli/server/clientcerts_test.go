package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/web"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// clientRig is a server that asks for client certificates of the authorities in a file.
type clientRig struct {
	*testing.T
	cs      *certificates
	file    string
	address string
}

// newClientRig starts a server that sends /stream line by line, gives the connection of /raw away to an echo, and answers
// other paths at once.
func newClientRig(t *testing.T, authorities ...[]byte) *clientRig {
	t.Helper()
	dir := t.TempDir()
	writePair(t, dir, 1)
	r := &clientRig{T: t, file: filepath.Join(dir, "authorities.pem")}
	r.write(authorities...)
	var err error
	if r.cs, err = openCertificates(&config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), AdminClientCA: r.file}); err != nil {
		t.Fatal(err)
	}
	respond, err := web.NewResponder(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = ln.Addr().String()
	var streams sync.WaitGroup
	server := &http.Server{TLSConfig: r.cs.adminConfig(), ReadHeaderTimeout: patience, Handler: r.cs.recheck(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		streams.Add(1)
		defer streams.Done()
		switch req.URL.Path {
		case "/stream":
			sendLines(req.Context(), w)
		case "/raw":
			echo(w)
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}), respond)}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(r.cs.listener(ln), "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		// What was given away ends with its connection.
		for c := range r.cs.open.all() {
			_ = c.Close()
		}
		streams.Wait()
	})
	return r
}

// sendLines sends lines until the client is gone.
func sendLines(ctx context.Context, w http.ResponseWriter) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := io.WriteString(w, "line\n")
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// echo takes the connection over, as WebSockets do, and sends back what comes.
func echo(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n"); err == nil {
		_, _ = io.Copy(conn, rw)
	}
}

// write writes the file of authorities.
func (r *clientRig) write(blocks ...[]byte) {
	r.Helper()
	if err := os.WriteFile(r.file, bytes.Join(blocks, nil), 0o600); err != nil {
		r.Fatal(err)
	}
}

// dialled is a connection of a client that has read the head of an answer.
type dialled struct {
	*tls.Conn
	path string
	in   *bufio.Reader
}

// dial opens a connection and asks for a path.
func (r *clientRig) dial(pair tls.Certificate, path string) dialled {
	r.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{ //nolint:gosec // the server is the one under test
		InsecureSkipVerify: true, Certificates: []tls.Certificate{pair},
	}}).DialContext(r.Context(), "tcp", r.address)
	if err != nil {
		r.Fatal(err)
	}
	d := dialled{conn.(*tls.Conn), path, bufio.NewReader(conn)}
	r.Cleanup(func() { _ = d.Close() })
	d.ask(r.T)
	return d
}

// ask sends the request and reads the head of the answer.
func (d dialled) ask(t *testing.T) {
	t.Helper()
	if err := d.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(d, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", d.path); err != nil {
		t.Fatal(err)
	}
	for line := "head"; strings.TrimSpace(line) != ""; {
		var err error
		if line, err = d.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if d.path == "/idle" {
		if _, err := d.in.Discard(len("ok")); err != nil {
			t.Fatal(err)
		}
	}
}

// goesOn fails the test unless the connection is still good.
func (d dialled) goesOn(t *testing.T) {
	t.Helper()
	switch d.path {
	case "/idle":
		d.ask(t)
	case "/raw":
		if _, err := io.WriteString(d, "x"); err != nil {
			t.Fatal(err)
		}
		if b, err := d.in.ReadByte(); err != nil || b != 'x' {
			t.Fatalf("%q, %v", b, err)
		}
	default:
		// What was on its way may be read from a closed connection, too.
		for range 20 {
			if _, err := d.in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ends reports whether the server has closed the connection.
func (d dialled) ends() error {
	_, err := io.Copy(io.Discard, d.in)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // of the connection itself
		return err
	}
	return nil
}

// TestConnectionsEndWithTheirCertificates: a connection whose client certificate is not good any more is closed, whether it
// waits, streams, or was taken over; the connections of others go on, and nothing is kept of those that are closed.
func TestConnectionsEndWithTheirCertificates(t *testing.T) {
	ca, caKey := authority(t, "an authority")
	gone, goneKey := authority(t, "one that is removed")
	block := func(c *x509.Certificate) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	revoked, endedList := revocations(t, ca, caKey, time.Now().Add(time.Hour)), revocations(t, gone, goneKey, time.Now().Add(-time.Minute))
	half := time.Now().Add(30 * time.Minute)
	for name, c := range map[string]struct {
		lost tls.Certificate
		// file are the blocks that the file has at last, after is how much later the connections are looked at.
		file  [][]byte
		after time.Duration
	}{
		"revoked":               {clientPair(t, ca, caKey, 8), [][]byte{block(ca), block(gone), revoked}, 0},
		"its authority removed": {clientPair(t, gone, goneKey, 9), [][]byte{block(ca)}, 0},
		"only an ended list":    {clientPair(t, gone, goneKey, 9), [][]byte{block(ca), block(gone), endedList}, 0},
		"ended":                 {clientPairUntil(t, ca, caKey, 9, half), [][]byte{block(ca), block(gone)}, 31 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := newClientRig(t, block(ca), block(gone))
			good := clientPair(t, ca, caKey, 7)
			var lost, others []dialled
			for _, path := range []string{"/idle", "/stream", "/raw"} {
				lost, others = append(lost, r.dial(c.lost, path)), append(others, r.dial(good, path))
			}
			log := slog.New(slog.DiscardHandler)
			r.cs.endBad(log, time.Now())
			for _, d := range append(others, lost...) {
				d.goesOn(t)
			}
			r.write(c.file...)
			if err := r.cs.loadClients(); err != nil {
				t.Fatal(err)
			}
			r.cs.endBad(log, time.Now().Add(c.after))
			for _, d := range lost {
				if err := d.ends(); err != nil {
					t.Errorf("%s: %v", d.path, err)
				}
			}
			for _, d := range others {
				d.goesOn(t)
			}
			if n := len(r.cs.open.all()); n != len(others) {
				t.Errorf("%d connections are kept, want %d", n, len(others))
			}
		})
	}
}

// TestRenewedAuthority: a connection goes on when its authority is replaced by one of the same name and key that lasts
// longer: a handshake would take its certificate.
func TestRenewedAuthority(t *testing.T) {
	ca, caKey := authority(t, "an authority")
	template := *ca
	template.NotAfter = ca.NotAfter.Add(time.Hour)
	renewed := signedBy(t, &template, &template, caKey.Public(), caKey)
	r := newClientRig(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
	d := r.dial(clientPair(t, ca, caKey, 7), "/idle")
	r.write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: renewed.Raw}))
	if err := r.cs.loadClients(); err != nil {
		t.Fatal(err)
	}
	r.cs.endBad(slog.New(slog.DiscardHandler), time.Now())
	d.goesOn(t)
}

// TestCallsAfterTheCertificateEnds: a call over a connection whose client certificate has lost its authority is refused
// before the connection is closed.
func TestCallsAfterTheCertificateEnds(t *testing.T) {
	ca, caKey := authority(t, "an authority")
	other, _ := authority(t, "another one")
	r := newClientRig(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
	d := r.dial(clientPair(t, ca, caKey, 7), "/idle")
	r.write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Raw}))
	if err := r.cs.loadClients(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(d, "GET /idle HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(d.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 403 || !resp.Close || !strings.Contains(string(body), "removed") {
		t.Errorf("%d, closes %t: %s, %v", resp.StatusCode, resp.Close, body, err)
	}
}
