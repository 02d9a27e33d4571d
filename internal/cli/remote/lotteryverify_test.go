package remote_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/gate"
)

// registered drafts a lottery and registers ann, bob and eve while it is open: on
// a slow machine the first one closes too early, and another is made.
func registered(t *testing.T, env []string) (id, seedHash string, entries []gate.EntryView) {
	t.Helper()
	for open := 2 * time.Second; open < clitest.Patience; open *= 2 {
		id = "draw-" + open.String()
		clitest.Run(t, env, "campaign", "create", "--id", id, "--title", "Draw", "--units", "5", "--starts", "+1h", "--ends", "+2h", "--room", "lottery",
			"--winners", "2", "--registration-closes", "+"+open.String(), "--public-value", "the numbers of Saturday", "--ticket", "1m", "--publish").Want(t, 0, id)
		entries = nil
		for _, user := range []string{"ann", "bob", "eve"} {
			api := clitest.User(t, strings.TrimPrefix(env[0], "DIBS_URL="), user)
			e, err := api.Lotteries.Register(t.Context(), id)
			if err == nil {
				entries = append(entries, e)
			}
			v, err := api.Lotteries.Get(t.Context(), id)
			if err != nil || v.PublicValueIs != "the numbers of Saturday" || v.Winners != 2 {
				t.Fatalf("%+v, %v", v, err)
			}
			seedHash = v.SeedHash
		}
		if len(entries) == 3 {
			return id, seedHash, entries
		}
	}
	t.Fatal("nobody could register")
	return "", "", nil
}

// TestLottery draws a lottery and has it verified, from the outside.
func TestLottery(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "create", "--title", "Draw", "--units", "5", "--ends", "+1h", "--winners", "2").Want(t, 2, "--winners belongs to --room")
	clitest.Run(t, env, "campaign", "create", "--title", "Draw", "--units", "5", "--ends", "+1h", "--ticket-work", "2").Want(t, 2, "--ticket-work belongs to --ticket")
	clitest.Run(t, env, "campaign", "create", "--title", "Draw", "--units", "5", "--starts", "+1h", "--ends", "+2h", "--room", "lottery", "--winners", "2",
		"--registration-closes", "+90m").Want(t, 1, "--registration-closes ")
	id, seedHash, entries := registered(t, env)
	var v gate.LotteryView
	show := func() {
		t.Helper()
		r := clitest.Run(t, env, "lottery", "show", id, "--output", "json")
		if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
			t.Fatalf("%v: %s%s", err, r.Out, r.Err)
		}
	}
	soon := time.Now().Add(clitest.Patience)
	for show(); v.ListHash == "" && time.Now().Before(soon); show() {
		<-time.After(100 * time.Millisecond)
	}
	// What is public needs no key.
	public := env[:1]
	clitest.Run(t, public, "lottery", "show", id).Want(t, 0, seedHash, "the numbers of Saturday", v.ListHash)
	clitest.Run(t, public, "lottery", "verify", id).Want(t, 1, "is not drawn")
	clitest.Run(t, public, "lottery", "public-value", id, "3 14 15").Want(t, 2, "admin_key (not set")
	clitest.Run(t, env, "lottery", "public-value", id, "3 14 15").Want(t, 0, "3 14 15")
	clitest.Run(t, env, "lottery", "public-value", id, "3 14 16").Want(t, 1, "another public value")
	for show(); v.DrawnAt == nil && time.Now().Before(soon); show() {
		<-time.After(100 * time.Millisecond)
	}
	dir := t.TempDir()
	winners := filepath.Join(dir, "winners.txt")
	clitest.Run(t, public, "lottery", "verify", id, "--seed-hash", seedHash, "--winners", winners).Want(t, 0, "seed, list and winners are what was published")
	text, err := os.ReadFile(winners)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("the winners are %q, %v", text, err)
	}
	clitest.Run(t, public, "lottery", "verify", id, "--output", "json").Want(t, 0, `"problems": []`)
	clitest.Run(t, public, "lottery", "verify", id, "--entries", "none.txt").Want(t, 2, "--entries: open none.txt")
	for i, user := range []string{"ann", "bob", "eve"} {
		want := "lost"
		if strings.Contains(string(text), entries[i].Entry) {
			want = "won"
		}
		clitest.Run(t, env, "lottery", "verify", id, "--user", user, "--nonce", entries[i].Nonce).Want(t, 0, want)
	}
	clitest.Run(t, env, "lottery", "verify", id, "--user", "ann").Want(t, 2, "belong together")
	clitest.Run(t, env, "lottery", "verify", id, "--user", "ann", "--nonce", entries[1].Nonce).Want(t, 1, "no entry of this --user", "absent")
	clitest.Run(t, env, "lottery", "verify", id, "--seed-hash", strings.Repeat("0", 64)).Want(t, 1, "another seed_hash")
	// A list with one entry less is another list, with other winners.
	short := filepath.Join(dir, "entries.txt")
	if err := os.WriteFile(short, []byte(entries[0].Entry+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "lottery", "verify", id, "--entries", short).Want(t, 1, "hash of the list", "number of entries", "cutoff")
	// The draw is right, and its value is none that was announced so.
	other := append([]string{"DIBS_URL=" + announcing(t, strings.TrimPrefix(env[0], "DIBS_URL="), "digits:6")}, env[1:]...)
	clitest.Run(t, other, "lottery", "verify", id).Want(t, 1, "the public value must be written as announced, in the format digits:6")
}

// announcing is a server that says that its lotteries' public values have a format.
func announcing(t *testing.T, url, format string) string {
	t.Helper()
	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(resp *http.Response) error {
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			body = bytes.Replace(body, []byte(`"public_value_is":`), []byte(`"public_value_format":"`+format+`","public_value_is":`), 1)
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}
