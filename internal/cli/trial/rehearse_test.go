package trial_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// small is a rehearsal that is over in a moment.
var small = []string{"rehearse", "--users", "40", "--requests", "120", "--stock", "20"}

// TestRehearse shows people a table on one stream and progress on the other.
func TestRehearse(t *testing.T) {
	r := clitest.Run(t, nil, small...)
	r.Want(t, cli.ExitOK, "granted", "sold_out", "p99.9", "no oversell", "every promise held")
	if !strings.Contains(r.Err, "pressing") || strings.Contains(r.Out, "pressing") {
		t.Errorf("the progress is not on stderr alone:\n%s", r.Err)
	}
	clitest.Run(t, nil, append(small, "--kind", "coupon")...).Want(t, cli.ExitOK, "every promise held")
	clitest.Run(t, nil, append(small, "--kind", "redpacket")...).Want(t, cli.ExitOK, "the money adds up", "funded = ", "every promise held")
	// Settings made for other verbs do not point a rush at a server in use.
	clitest.Run(t, []string{"DIBS_URL=http://127.0.0.1:1", "DIBS_ADMIN_KEY=" + clitest.Key, "DIBS_DATA=/nowhere"}, small...).Want(t, cli.ExitOK, "(embedded)")
}

// TestRehearseJSON shows machines one document.
func TestRehearseJSON(t *testing.T) {
	r := clitest.Run(t, nil, append(small, "--output", "json", "--keys=false", "--quantity", "2", "--limit", "2", "--seed", "7")...)
	var report rehearsal.Report
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatalf("%v: %s", err, r.Out)
	}
	if !report.OK || report.Seed != 7 || report.Stats.Granted != 20 || report.Outcomes[0].Count != 10 {
		t.Errorf("%+v", report)
	}
}

// TestRehearseServer loads a server that is there, with its own tokens.
func TestRehearseServer(t *testing.T) {
	_, address := clitest.Serve(t, t.TempDir())
	clitest.Run(t, clitest.Secrets, append(small, "--url", address)...).Want(t, cli.ExitOK, "every promise held")
	clitest.Run(t, []string{"DIBS_ADMIN_KEY=" + clitest.Key}, append(small, "--url", address)...).Want(t, cli.ExitFailure, "--jwt-secret")
}

// TestRehearseAdminURL loads users' calls through the address for users, and sends admin
// calls to the one for administrators. Without it the error says what is missing.
func TestRehearseAdminURL(t *testing.T) {
	v, users := clitest.Serve(t, t.TempDir(), "--admin-listen", "127.0.0.1:0")
	admin := v.Await(t, v.Err, `admin_url=(\S+)`)[1]
	clitest.Run(t, clitest.Secrets, append(small, "--url", users, "--admin-url", admin)...).
		Want(t, cli.ExitOK, "every promise held", users)
	clitest.Run(t, clitest.Secrets, append(small, "--url", users)...).Want(t, cli.ExitFailure, "making a campaign", "--admin-url")
	clitest.Run(t, clitest.Secrets, "rehearse", "--url", users, "--campaign", "sale").Want(t, cli.ExitFailure, "reading the campaign sale", "--admin-url")
	clitest.Run(t, nil, append(small, "--admin-url", "nowhere")...).Want(t, cli.ExitUsage, "--admin-url: needs --url")
	clitest.Run(t, clitest.Secrets, append(small, "--url", users, "--admin-url", "nowhere")...).Want(t, cli.ExitUsage, "--admin-url: must look like")
}

// TestRehearseBroken ends with 1 when a promise is broken: here by a server
// that admits it.
func TestRehearseBroken(t *testing.T) {
	_, address := clitest.Serve(t, t.TempDir())
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(res *http.Response) error {
			if res.Request.URL.Path != "/v1/verify" {
				return nil
			}
			body, err := io.ReadAll(res.Body)
			body = bytes.ReplaceAll(body, []byte(`"held":true`), []byte(`"held":false`))
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			res.Header.Del("Content-Length")
			return err
		},
	}
	front := httptest.NewServer(proxy)
	defer front.Close()
	clitest.Run(t, clitest.Secrets, append(small, "--url", front.URL)...).Want(t, cli.ExitFailure, "BROKEN: 7 of", "did not pass")
}

// TestRehearseUnjudged ends with 3 when nothing is broken and a promise could not be
// judged: here the server does not compare engine and ledger.
func TestRehearseUnjudged(t *testing.T) {
	_, address := clitest.Serve(t, t.TempDir())
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/verify" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	clitest.Run(t, clitest.Secrets, append(small, "--url", front.URL, "--patience", "100ms")...).
		Want(t, cli.ExitUnjudged, "COULD NOT BE JUDGED", "NOT JUDGED: nothing is broken, and 1 of", "not every promise could be judged")
	clitest.Run(t, nil, "rehearse", "--patience", "0").Want(t, cli.ExitUsage, "--patience: must be positive")
}

// TestRehearseFaults lists every fault of the flags at once.
func TestRehearseFaults(t *testing.T) {
	clitest.Run(t, nil, "rehearse", "--users", "0", "--stock", "0", "--timeout", "0", "--duration", "5s", "--keys=false", "--repeats", "0.5", "--admin-key", clitest.Key).
		Want(t, cli.ExitUsage, "--users: must", "--stock: must", "--timeout: must", "--duration: needs --rate", "--repeats: cannot", "--admin-key: needs --url")
	clitest.Run(t, nil, "rehearse", "--url", "http://127.0.0.1:1", "--admin-key", clitest.Key).Want(t, cli.ExitFailure, "no server answers at http://127.0.0.1:1")
	clitest.Run(t, nil, "rehearse", "--scenario", "none").Want(t, cli.ExitUsage, "--scenario must be many-users or one-user")
}

// TestRehearseStopped prints what is known so far on ctrl-C.
func TestRehearseStopped(t *testing.T) {
	p := clitest.Start(t, nil, "rehearse", "--rate", "200", "--duration", "1h", "--users", "100")
	p.Await(t, p.Err, `pressing .*granted \d*[1-9]`)
	if code := p.Stop(t); code != cli.ExitFailure {
		t.Errorf("it ended with %d", code)
	}
	for _, want := range []string{"STOPPED", "granted", "p99.9", "not sent"} {
		if !strings.Contains(p.Out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, p.Out)
		}
	}
}
