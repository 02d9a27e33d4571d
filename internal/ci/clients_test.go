package ci_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestClients runs the example of each language against dibs dev, behind a proxy
// that loses the answer of the first claim: the example must find that claim by
// its key, be refused a ticket, pay, and be told so by a webhook that it has
// checked. Go's own client sends a request with a key again without a word.
func TestClients(t *testing.T) {
	for name, command := range map[string][]string{
		"java": {"java", "../../examples/java/Dibs.java"},
		"node": {"node", "../../examples/node/dibs.mjs"},
		"go":   {"go", "run", "-trimpath", "../../examples/go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int32
			server := losing(t, startDev(t, compiled(t), "--webhook-allow-private"), &lost)
			client := exec.CommandContext(t.Context(), command[0], command[1:]...)
			client.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DIBS_") })
			client.Env = append(client.Env, "DIBS_URL="+server, "DIBS_ADMIN_KEY="+pageKey, "CGO_ENABLED=0")
			said, err := client.CombinedOutput()
			m := regexp.MustCompile(`^(?:no answer: again, with the same key\n)?granted (\w{16})\ntickets: not_started\npaid (\w{16})\n$`).FindSubmatch(said)
			if err != nil || m == nil || string(m[1]) != string(m[2]) || lost.Load() != 1 {
				t.Errorf("%v, %d answers lost:\n%s", err, lost.Load(), said)
			}
		})
	}
}

// losing passes everything on to a server, and cuts the connection in place of
// the answer to the first claim.
func losing(t *testing.T, address string, lost *atomic.Int32) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodPost && strings.HasSuffix(r.Request.URL.Path, "/claims") && lost.CompareAndSwap(0, 1) {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}
