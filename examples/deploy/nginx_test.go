package deploy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestNginx runs nginx with the file, before one node that is alive and two
// that are not: requests and WebSockets reach the living one, over connections that
// nginx keeps, and nobody reaches the metrics.
func TestNginx(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ws" {
			echo(w, r)
			return
		}
		if r.Header.Get("Connection") != "" {
			t.Errorf("the connection of %s is not kept: %v", r.URL.Path, r.Header)
		}
		io.WriteString(w, r.Method+" "+r.URL.Path) //nolint:errcheck // the test reads it
	}))
	t.Cleanup(node.Close)
	listen := free(t)
	text := read(t, "nginx.conf")
	for from, to := range map[string]string{
		"dibs1:8080": free(t), "dibs2:8080": strings.TrimPrefix(node.URL, "http://"), "dibs3:8080": free(t), "listen 8080": "listen " + listen,
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("there is no %s", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	dir := t.TempDir()
	// Its workers run as another user.
	must(t, os.Chmod(dir, 0o755))
	conf := filepath.Join(dir, "nginx.conf")
	must(t, os.WriteFile(conf, []byte(text), 0o644))
	cmd := exec.CommandContext(t.Context(), "/usr/sbin/nginx", "-p", dir, "-e", "stderr", "-c", conf,
		"-g", "daemon off; master_process off; error_log stderr; pid "+filepath.Join(dir, "pid")+";")
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		// It is killed: how it ended says nothing.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	status, _ := eventually(t, "http://"+listen+"/healthz")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for range 20 {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, body := ask(t, method, "http://"+listen+"/v1/x"); status != http.StatusOK || body != method+" /v1/x" {
				t.Fatalf("status %d, %s", status, body)
			}
		}
	}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+listen+"/v1/ws", nil) //nolint:bodyclose // the library closes it
	must(t, err)
	must(t, conn.Write(t.Context(), websocket.MessageText, []byte("tap")))
	if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "tap" {
		t.Errorf("the WebSocket answers %q, %v", text, err)
	}
	must(t, conn.Close(websocket.StatusNormalClosure, ""))
	if status, _ := ask(t, http.MethodGet, "http://"+listen+"/metrics"); status != http.StatusForbidden {
		t.Errorf("the metrics are answered with %d", status)
	}
}

// echo accepts a WebSocket and sends its first message back.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		// It has answered the request: the client's dial fails.
		return
	}
	kind, text, err := conn.Read(r.Context())
	if err == nil {
		err = conn.Write(r.Context(), kind, text)
	}
	// The client waits for the closing, which also answers its own.
	if err == nil {
		_, _, _ = conn.Read(r.Context())
	}
	_ = conn.CloseNow()
}

// free is an address where nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// eventually asks until somebody answers.
func eventually(t *testing.T, url string) (status int, body string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		if status, body = ask(t, http.MethodGet, url); status != 0 {
			return status, body
		}
		<-tick.C
	}
	t.Fatalf("%s is not answered", url)
	return 0, ""
}

// ask sends a request; status 0 when nobody answers.
func ask(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	must(t, err)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, ""
	}
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}
