package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/signedin"
)

// newLoginCommand returns the verb that signs a person in by a browser.
func newLoginCommand() *cobra.Command {
	var within time.Duration
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "login",
		Short: "Sign in at the server's identity provider",
		Long: `Sign in at the identity provider of the server at --url, in a browser on this machine.
login prints an address to open, and waits on a port of 127.0.0.1 for the browser to
come back. It brings a key that ends after twelve hours at most: dibs keeps
it in a file that only you can read, and the verbs that call this server send it when
neither --admin-key nor $DIBS_ADMIN_KEY is given. dibs logout ends it.`,
		Example: `  dibs login --url https://admin.shop.example
  dibs campaign list --url https://admin.shop.example`,
		Args: cobra.NoArgs,
		RunE: config.With(func(cmd *cobra.Command, c *config.Config) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			err := login(ctx, cmd, c)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("no browser came back within %s", within)
			}
			return Explain(c.URL, err)
		}, config.CallRules),
	})
	cmd.Flags().DurationVar(&within, "within", 5*time.Minute, "Give up after this `TIME`")
	config.AddFlags(cmd, config.CallKeys)
	return cmd
}

// login waits for a browser, and exchanges what it brings for a key.
func login(ctx context.Context, cmd *cobra.Command, c *config.Config) error {
	store, err := signedin.Open(cli.Getenv(cmd, configHome))
	if err != nil {
		return err
	}
	server, err := newClient(c, "")
	if err != nil {
		return err
	}
	if offered, err := server.Sessions.Offered(ctx); err != nil {
		return err
	} else if !offered {
		return fmt.Errorf("the server at %s offers no sign-in: it has no identity provider (oidc_issuer), or this is not its address for administrators; call it with an API key instead, --admin-key or $DIBS_ADMIN_KEY", c.URL)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l := &waiting{state: rand.Text(), verifier: rand.Text() + rand.Text(), came: make(chan string, 1)}
	page := &http.Server{Handler: l, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	served := make(chan error, 1)
	go func() { served <- page.Serve(ln) }()
	defer func() {
		// The browser's answer may still be on its way.
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = page.Shutdown(ending)
		<-served
	}()
	cmd.PrintErrln("Open this address in a browser on this machine:")
	address := l.address(c.URL, ln.Addr())
	if !cli.WantsJSON(cmd) {
		cmd.Println(address)
	} else if err := cli.JSONLines(cmd).Encode(map[string]string{"address": address}); err != nil {
		return err
	}
	var code string
	select {
	case code = <-l.came:
	case <-ctx.Done():
		return ctx.Err()
	}
	k, err := server.Sessions.Exchange(ctx, code, l.verifier)
	if err != nil {
		return err
	}
	if err := store.Keep(c.URL, signedin.Key{Secret: k.Secret, Name: k.Name, Role: string(k.Role), ExpiresAt: k.ExpiresAt}, time.Now()); err != nil {
		return err
	}
	cmd.PrintErrf("You are signed in as %s with the role %s until %s.\n", cli.Plain(k.Name), k.Role, k.ExpiresAt.Local().Format(time.DateTime))
	if !cli.WantsJSON(cmd) {
		return nil
	}
	return cli.JSONLines(cmd).Encode(signedIn{k.Name, string(k.Role), k.ExpiresAt})
}

// signedIn is what login says as JSON at its end.
type signedIn struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	ExpiresAt time.Time `json:"expires_at"`
}

// waiting takes the browser that comes back. came has room for one code: the first.
type waiting struct {
	state, verifier string
	came            chan string
}

// address is what the browser opens.
func (l *waiting) address(server string, at net.Addr) string {
	sum := sha256.Sum256([]byte(l.verifier))
	port := 0
	if tcp, ok := at.(*net.TCPAddr); ok {
		port = tcp.Port
	}
	return strings.TrimRight(server, "/") + client.SignInPath + "?" + url.Values{
		"port": {strconv.Itoa(port)}, "challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "state": {l.state},
	}.Encode()
}

// ServeHTTP takes a code. A page of another site can send a browser here as well: it does not know the state.
func (l *waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) != 1 || q.Get("code") == "" {
		http.NotFound(w, r)
		return
	}
	select {
	case l.came <- q.Get("code"):
	default:
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	// A browser that went away misses nothing.
	_, _ = w.Write([]byte("dibs has the sign-in: look at the terminal. You may close this page.\ndibs 已收到登录信息：请查看终端。您可以关闭此页面。\n"))
}

// newLogoutCommand returns the verb that ends what login began.
func newLogoutCommand() *cobra.Command {
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "logout",
		Short: "End the sign-in of dibs login",
		Long: `End the sign-in at the server at --url that dibs login began: the server revokes its key,
and dibs deletes it here. Where the server does not answer, the key is deleted all
the same, and ends by itself.`,
		Args: cobra.NoArgs,
		RunE: config.With(logout, config.CallRules),
	})
	config.AddFlags(cmd, config.CallKeys)
	return cmd
}

func logout(cmd *cobra.Command, c *config.Config) error {
	store, err := signedin.Open(cli.Getenv(cmd, configHome))
	if err != nil {
		return err
	}
	k, ok, err := store.Find(c.URL)
	if err != nil {
		return err
	}
	if !ok {
		cmd.PrintErrln("dibs: you were not signed in at " + c.URL)
		return signedOut(cmd, c.URL, false)
	}
	server, err := newClient(c, k.Secret)
	if err != nil {
		return err
	}
	told := server.Sessions.Leave(cmd.Context())
	if err := store.Forget(c.URL); err != nil {
		return err
	}
	// A key that has ended cannot be ended again.
	if told != nil && time.Now().Before(k.ExpiresAt) {
		return fmt.Errorf("the key is deleted here, and was not revoked: it ends at %s: %w", k.ExpiresAt.Local().Format(time.DateTime), Explain(c.URL, told))
	}
	return signedOut(cmd, c.URL, true)
}

// signedOut says as JSON whether there was a sign-in to end. For people silence does.
func signedOut(cmd *cobra.Command, at string, was bool) error {
	if !cli.WantsJSON(cmd) {
		return nil
	}
	return cli.JSONLines(cmd).Encode(map[string]any{"url": at, "ended": was})
}

// configHome names the folder of the user's settings.
const configHome = "XDG_CONFIG_HOME"
