package remote_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestSessionEnd lists a session of the console and ends it: its cookie is worth nothing then.
func TestSessionEnd(t *testing.T) {
	env := clitest.Served(t)
	url, _ := strings.CutPrefix(env[0], "DIBS_URL=")
	ask := func(method, body, cookie string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+"/v1/session", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", "a browser")
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	cookie, _, _ := strings.Cut(ask("POST", `{"key":"`+clitest.Key+`"}`, "").Header.Get("Set-Cookie"), ";")
	if who := ask("GET", "", cookie); who.StatusCode != 200 {
		t.Fatalf("signed in: %s", who.Status)
	}
	list := clitest.Run(t, env, "session", "list")
	list.Want(t, 0, "a browser", "127.0.0.1")
	clitest.Run(t, env, "session", "end", regexp.MustCompile(`s-\S+`).FindString(list.Out)).Want(t, 0, "a browser")
	if who := ask("GET", "", cookie); who.StatusCode != 401 {
		t.Errorf("after the end: %s", who.Status)
	}
	clitest.Run(t, env, "session", "list", "--output", "json").Want(t, 0, "[]")
	clitest.Run(t, env, "session", "end", "s-none").Want(t, 1, "no such session")
}
