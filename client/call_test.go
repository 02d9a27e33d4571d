package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/client"
)

// echo answers each call with what a test says and keeps the last request.
type echo struct {
	status int
	header http.Header
	body   string

	last *http.Request
	sent string
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	e.last, e.sent = r, string(raw)
	for k, v := range e.header {
		w.Header()[k] = v
	}
	w.WriteHeader(e.status)
	if _, err := io.WriteString(w, e.body); err != nil {
		panic(err)
	}
}

func serve(t *testing.T, opts client.Options) (*echo, *client.Client) {
	t.Helper()
	e := &echo{status: 200, body: "{}"}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return e, c
}

// calls checks that calls go to the addresses of the API with the right tokens.
func calls(t *testing.T, want map[string]func(ctx context.Context, c *client.Client) error) {
	t.Helper()
	e, c := serve(t, client.Options{Token: "user-token", AdminKey: "admin-key", Language: "zh-CN"})
	for want, call := range want {
		if err := call(t.Context(), c); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		token := strings.TrimPrefix(e.last.Header.Get("Authorization"), "Bearer ")
		if got := token + " " + e.last.Method + " " + e.last.URL.RequestURI(); got != want {
			t.Errorf("called %q, want %q", got, want)
		}
		if e.last.Header.Get("Accept-Language") != "zh-CN" {
			t.Errorf("%s: no language", want)
		}
	}
}
