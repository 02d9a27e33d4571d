package server

import (
	"net"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

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
		if _, err := listen(t.Context(), s.faces[0].ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "is in use by another program: stop that one, or name another --listen") {
			t.Errorf("%v", err)
		}
		for _, f := range s.faces {
			if err := f.ln.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := listen(t.Context(), net.JoinHostPort("192.0.2.1", "1")); err == nil || !strings.Contains(err.Error(), "cannot listen on 192.0.2.1:1: ") {
		t.Errorf("%v", err)
	}
}
