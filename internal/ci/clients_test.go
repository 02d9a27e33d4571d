package ci_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
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

// TestConsumer runs the example of the other side of events: it credits a sale that it hears of by the
// stream and by a webhook, whose signature it has checked, and Ctrl-C ends it.
func TestConsumer(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	address := startDev(t, compiled(t), "--events", redis.URL(), "--webhook-allow-private")
	program, hook := filepath.Join(t.TempDir(), "consumer"), "127.0.0.1:"+freePort(t)
	env := append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DIBS_") }),
		"DIBS_URL="+address, "DIBS_ADMIN_KEY="+pageKey, "CGO_ENABLED=0")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", cmd.Args, err, out)
		}
		return string(out)
	}
	run("go", "build", "-trimpath", "-o", program, "../../examples/consumer")
	run(compiled(t), "campaign", "create", "--id", "mugs", "--title", "Mugs", "--units", "5", "--ends", "+1h", "--price", "5CNY", "--pay-within", "5m", "--publish")
	made := regexp.MustCompile(`"secret": "([^"]+)"`).FindStringSubmatch(run(compiled(t), "events", "endpoints", "create", "http://"+hook, "--output", "json"))
	if made == nil {
		t.Fatal("a new webhook has no secret")
	}
	// The example's group, from the first event on: one that it made itself would begin with the next.
	if _, err := redis.Do(t.Context(), "XGROUP", "CREATE", "dibs:events", "points", "0", "MKSTREAM"); err != nil {
		t.Fatal(err)
	}
	example := exec.CommandContext(t.Context(), program, "--from", redis.URL(), "--listen", hook)
	example.Env = append(env, "WEBHOOK_SECRET="+made[1])
	said, err := example.StdoutPipe()
	if err == nil {
		err = example.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`"id":"(\w{16})"`).FindStringSubmatch(run("curl", "-sS", "-X", "POST", "-H", "Authorization: Bearer dev_42", address+"/v1/campaigns/mugs/claims"))
	if id == nil {
		t.Fatal("the claim has no id")
	}
	run(compiled(t), "claim", "confirm", id[1], "--ref", "pay-1")
	credits := 0
	for lines := bufio.NewScanner(said); credits < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "10 points for 42, by event ") {
			credits++
		}
	}
	if err := errors.Join(example.Process.Signal(os.Interrupt), example.Wait()); err != nil || credits != 2 {
		t.Errorf("%d credits, %v", credits, err)
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
