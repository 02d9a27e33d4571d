package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/server"
)

// quiet are settings of a server in a folder.
func quiet(data string) *config.Config {
	return &config.Config{
		Listen: "127.0.0.1:0", Data: data, Engine: []string{"memory"}, LedgerTimeout: time.Second, Durability: "durable", DurabilityLost: "refuse",
		Drain: time.Second, Migrate: true, JWTSecret: clitest.Secret, ProxyHeader: "Forwarded", LimitEntries: 1024,
	}
}

// TestRun serves, drains when its context ends, and leaves nothing behind that keeps
// the next server out.
func TestRun(t *testing.T) {
	c, log := quiet(t.TempDir()), slog.New(slog.NewTextHandler(io.Discard, nil))
	for range 2 {
		s, err := server.Start(t.Context(), c, server.Options{Log: log, Version: "v7"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		resp, err := http.Get(s.URL() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("status %d, %v", resp.StatusCode, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if _, err := http.Get(s.URL() + "/readyz"); err == nil {
			t.Error("the address is still served")
		}
	}
}

// TestStartFails closes everything that it opened before the failure: the address and
// the folder are free again.
func TestStartFails(t *testing.T) {
	c, log := quiet(t.TempDir()), slog.New(slog.NewTextHandler(io.Discard, nil))
	c.TLSCert, c.TLSKey = "none.pem", "none.key"
	if s, err := server.Start(t.Context(), c, server.Options{Log: log}); err == nil || s != nil || !strings.Contains(err.Error(), "tls_cert and tls_key") {
		t.Fatalf("%v, %v", s, err)
	}
	c.TLSCert, c.TLSKey = "", ""
	s, err := server.Start(t.Context(), c, server.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Start(t.Context(), c, server.Options{Log: log}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the data folder %s is in use by process", c.Data)) {
		t.Errorf("a second server on the folder: %v", err)
	}
	if err := s.Close(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
