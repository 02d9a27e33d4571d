package remote_test

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/openid"
)

// freeAddress is one that nothing listens on: the provider has to know the server's before it starts.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// TestLogin: a person signs in by a browser, calls the server without a key, and signs out: then the key is worth
// nothing, here and there. The server has no key of its own.
func TestLogin(t *testing.T) {
	at := freeAddress(t)
	provider, err := openid.Start("http://" + at + "/console/oidc/callback")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	provider.Is(openid.Person{ID: "ann-1", Email: "ann@shop.example", Groups: []string{"ops"}})
	server := clitest.Start(t, []string{"DIBS_JWT_SECRET=" + clitest.Secret, "DIBS_OIDC_CLIENT_SECRET=" + openid.ClientSecret}, "serve", "--data", t.TempDir(), "--listen", at,
		"--oidc-issuer", provider.URL(), "--oidc-client-id", openid.ClientID, "--oidc-address", "http://"+at, "--oidc-roles", "ops=admin")
	server.Await(t, server.Err, `msg=serving`)
	home := t.TempDir()
	env := []string{"DIBS_URL=http://" + at + "/", "XDG_CONFIG_HOME=" + home}
	clitest.Run(t, env, "session", "list").Want(t, 2, "admin_key", "dibs login")
	clitest.Run(t, env, "logout").Want(t, 0, "you were not signed in")

	login := clitest.Start(t, env, "login")
	comeBack(t, login.Await(t, login.Out, `(http://\S+)`)[1])
	if code := login.Code(t); code != 0 {
		t.Fatalf("login ended with %d: %s", code, login.Err)
	}
	login.Await(t, login.Err, `You are signed in as ann@shop.example with the role admin`)
	file := filepath.Join(home, "dibs", "sign-ins.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	secret := regexp.MustCompile(`"secret": "(\S+)"`).FindSubmatch(kept)[1]
	list := clitest.Run(t, env, "session", "list")
	list.Want(t, 0, "ann@shop.example")
	// Another server does not get the key.
	clitest.Run(t, []string{"DIBS_URL=http://127.0.0.1:1", "XDG_CONFIG_HOME=" + home}, "session", "list").Want(t, 2, "admin_key")

	clitest.Run(t, env, "logout", "--output", "json").Want(t, 0, `"ended":true`)
	clitest.Run(t, env, "logout", "--output", "json").Want(t, 0, `"ended":false`)
	clitest.Run(t, env, "session", "list").Want(t, 2, "admin_key")
	clitest.Run(t, append(env, "DIBS_ADMIN_KEY="+string(secret)), "session", "list").Want(t, 1, "does not take this admin key")
	clitest.Run(t, env, "login", "--within", "1ms").Want(t, 1, "no browser came back")

	again := clitest.Start(t, env, "login", "--output", "json")
	comeBack(t, again.Await(t, again.Out, `"address": ?"(http://[^"]+)"`)[1])
	again.Await(t, again.Out, `"name":"ann@shop.example","role":"admin"`)
}

// TestNoSignIn: a server without an identity provider cannot sign people in, and one that is not there neither: login
// says so at once, and what to do.
func TestNoSignIn(t *testing.T) {
	home := "XDG_CONFIG_HOME=" + t.TempDir()
	clitest.Run(t, append(clitest.Served(t), home), "login").Want(t, 1, "offers no sign-in", "--admin-key or $DIBS_ADMIN_KEY")
	clitest.Run(t, []string{"DIBS_URL=http://127.0.0.1:1", home}, "login").Want(t, 1, "no server answers at http://127.0.0.1:1")
}

// comeBack is the browser of a person: it signs in, and follows the page's link to the command line. A page of another
// site that does not know the state is not taken for it.
func comeBack(t *testing.T, address string) {
	t.Helper()
	begun, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b := openid.NewBrowser()
	other, err := b.Get(t.Context(), "http://127.0.0.1:"+begun.Query().Get("port")+"/?code=x&state=x")
	if err != nil || other.StatusCode != http.StatusNotFound {
		t.Fatalf("a false state: %v, %v", other, err)
	}
	_ = other.Body.Close()
	_, answer, err := b.Until(t.Context(), address, func(*url.URL) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	text := readPage(t, answer)
	link := regexp.MustCompile(`href="(http://127[^"]+)"`).FindStringSubmatch(text)
	if link == nil {
		t.Fatalf("%s %s", answer.Status, text)
	}
	last, err := b.Get(context.Background(), html.UnescapeString(link[1]))
	if err != nil || last.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", last, err)
	}
	_ = readPage(t, last)
}

func readPage(t *testing.T, answer *http.Response) string {
	t.Helper()
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
