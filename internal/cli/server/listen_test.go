package server

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// TestStreamsOfFaces: the address for users has bounds of its own over HTTP/2, that of administrators has net/http's.
func TestStreamsOfFaces(t *testing.T) {
	s, err := Start(t.Context(), &config.Config{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Data: t.TempDir(), Engine: []string{"memory"}, LedgerTimeout: time.Second, Durability: "durable",
		DurabilityLost: "refuse", Drain: time.Second, Migrate: true, JWTSecret: "the secret of users' tokens, 32 bytes or more", ProxyHeader: "Forwarded", LimitEntries: 1024,
	}, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range s.faces {
		if bounded := f.http.HTTP2 != nil; bounded != (i == 0) {
			t.Errorf("address %d is bounded: %t", i, bounded)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestListen: a server has one address, or two, with their real ports; an address in
// use is named with what to do.
func TestListen(t *testing.T) {
	for _, c := range []struct {
		admin string
		two   bool
	}{{"", false}, {"127.0.0.1:0", true}} {
		s := &Server{c: &config.Config{Listen: "127.0.0.1:0", AdminListen: c.admin}}
		if err := s.listen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (s.URL() != s.AdminURL()) != c.two || !strings.HasPrefix(s.URL(), "http://127.0.0.1:") || strings.HasSuffix(s.URL(), ":0") {
			t.Errorf("%s and %s", s.URL(), s.AdminURL())
		}
		s.certs = &certificates{}
		if !strings.HasPrefix(s.AdminURL(), "https://127.0.0.1:") {
			t.Errorf("with a certificate: %s", s.AdminURL())
		}
		taken := s.faces[0].ln.Addr().String()
		for flag, again := range map[string]*config.Config{"--listen": {Listen: taken}, "--admin-listen": {Listen: "127.0.0.1:0", AdminListen: taken}} {
			other := &Server{c: again}
			if err := other.listen(t.Context()); err == nil || !strings.Contains(err.Error(), taken+" is in use by another program") || !strings.Contains(err.Error(), "name another "+flag+" ") {
				t.Errorf("%v", err)
			}
			for _, f := range other.faces {
				if err := f.ln.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for _, f := range s.faces {
			if err := f.ln.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := listen(t.Context(), "--listen", net.JoinHostPort("192.0.2.1", "1")); err == nil || !strings.Contains(err.Error(), "cannot listen on 192.0.2.1:1: ") {
		t.Errorf("%v", err)
	}
}
