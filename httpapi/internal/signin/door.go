// Package signin signs administrators in by an identity provider: browsers, which get the console's cookie, and command
// lines, which get a key.
//
// The state of one sign-in, while the browser is at the provider, goes out sealed in a cookie and comes back. A person
// whom the provider identified for a command line is in the ledger until the command line comes with its code: a sealed
// text could be forged by a reader of the ledger, which has the key. So any node can go on with what another one began.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/internal/web"
)

const (
	// Path is where a browser begins.
	Path = "/console/oidc"
	// CallbackPath is where the provider sends it back.
	CallbackPath = Path + "/callback"
	// TokenPath is where a command line exchanges its code.
	TokenPath = sessions.Path + "/token"
	// cookie is the name of the cookie of a browser that is at the provider.
	cookie = "dibs_sign_in"
	// attemptLasts is how long a person may take at the provider.
	attemptLasts = 10 * time.Minute
	// maxTo bounds the address to come back to, in bytes.
	maxTo = 512
)

// People is the identity provider, as access/oidc is.
type People interface {
	// Console is the address at which browsers reach the console.
	Console() *url.URL
	// Address is where a browser goes to sign in. *dibs.Error of Unavailable.
	Address(ctx context.Context, a access.Attempt) (string, error)
	// Person is who signed in. *dibs.Error of Unauthenticated, of Unavailable, and of Forbidden together with the
	// person, who then has no role.
	Person(ctx context.Context, code string, a access.Attempt) (*access.Person, error)
}

// Sessions begins sessions of people.
type Sessions interface {
	// Pend keeps a person for a command line until then, and returns the code that names them.
	// *dibs.Error of Overloaded.
	Pend(ctx context.Context, is access.Person, challenge string, until time.Time) (code string, err error)
	// TakePending returns the person of a code, once. *dibs.Error of Unauthenticated.
	TakePending(ctx context.Context, code, challenge string, at time.Time) (access.Person, error)
	// SignIn begins a session of a person, with a key that ends with it. *dibs.Error of
	// Unauthenticated for an ID that was used before.
	SignIn(ctx context.Context, in access.SignIn) (k *access.APIKey, secret string, is *access.Session, err error)
}

// Log is the admin log.
type Log interface {
	BeginAction(ctx context.Context, a *access.AdminAction) error
	EndAction(ctx context.Context, a *access.AdminAction)
}

// Page answers with the page that asks a person whether a command line may act in their name; the link leads to an
// address. zh puts Chinese first.
type Page func(w http.ResponseWriter, r *http.Request, address, name string, zh bool) error

// Door signs people in. Its fields do not change while it serves, and what they name is safe for concurrent use.
type Door struct {
	People   People
	Seals    *sessions.Sessions
	Sessions Sessions
	Log      Log
	// Pauses makes those wait whose sign-ins fail: each failure may be a call of the provider.
	Pauses *sessions.Pauses
	Page   Page
	// Secure keeps cookies to HTTPS.
	Secure bool
	Now    func() time.Time
	Out    *slog.Logger
}

// Visit is what a call says of its sender.
type Visit struct {
	From             netip.Addr
	Agent, RequestID string
	Chinese          bool
}

func (v *Visit) address() string { return web.AddressText(v.From) }

// attempt is a sign-in that was begun, as the browser's cookie holds it.
type attempt struct {
	Is access.Attempt `json:"a"`
	// To is the page of the console to come back to.
	To   string       `json:"t,omitempty"`
	Line *commandLine `json:"l,omitempty"`
	// Until is in seconds since 1970.
	Until int64 `json:"u"`
}

var (
	errBegin = dibs.Fail(dibs.Unauthenticated, dibs.Text{
		EN: "this sign-in was begun in another browser, or too long ago: begin again", ZH: "本次登录是在其他浏览器中发起的，或已超时：请重新登录",
	})
	errNotGiven = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the identity provider did not sign you in", ZH: "身份提供方未完成登录"})
)

// Leave sends a browser to the provider.
func (d *Door) Leave(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	// Cookies are of one host: the one to which the provider sends the browser back. The mark ends it after one turn,
	// where a proxy writes another Host.
	if home := d.People.Console(); !sameHost(r.Host, home) && q.Get("moved") == "" {
		q.Set("moved", "1")
		Redirect(w, home.String()+Path+"?"+q.Encode())
		return nil
	}
	begun := attempt{
		Is: access.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text()},
		To: inside(q.Get("to")), Until: d.Now().Add(attemptLasts).Unix(),
	}
	if q.Has("port") {
		var err error
		if begun.Line, err = readLine(q); err != nil {
			return err
		}
	}
	to, err := d.People.Address(r.Context(), begun.Is)
	if err != nil {
		return err
	}
	value, err := d.Seals.Seal(cookie, begun)
	if err != nil {
		return err
	}
	http.SetCookie(w, d.cookie(value, int(attemptLasts.Seconds())))
	Redirect(w, to)
	return nil
}

// cookie is the cookie of a sign-in. Lax: it has to come along when the provider's page leads back.
func (d *Door) cookie(value string, age int) *http.Cookie {
	c := &http.Cookie{Name: cookie, Value: value, Path: Path, MaxAge: age, HttpOnly: true, Secure: d.Secure, SameSite: http.SameSiteLaxMode}
	// Over HTTPS browsers take it from this host alone, for all paths: another host of the domain could plant one of a
	// sign-in of its own, and so sign the browser in as another person.
	if d.Secure {
		c.Name, c.Path = "__Host-"+cookie, "/"
	}
	return c
}

// Entered is a browser that is signed in.
type Entered struct {
	Key     *access.APIKey
	Secret  string
	Session *access.Session
	// To is where it goes on.
	To string
}

// Return takes a browser that comes back from the provider. nil without an error means that it was answered with the
// page that asks for a command line.
//
// The cookie binds the answer to the browser that asked: another site cannot have a browser signed in as another person.
// It goes with its first use.
func (d *Door) Return(w http.ResponseWriter, r *http.Request, v Visit) (*Entered, error) {
	begun, err := d.begun(r)
	http.SetCookie(w, d.cookie("", -1))
	if err != nil {
		return nil, err
	}
	if err := d.Pauses.Check(v.From, d.Now()); err != nil {
		return nil, err
	}
	is, err := d.person(r, begun, v)
	if err != nil {
		if web.ProblemOf(err).Reason != dibs.Unavailable {
			d.Pauses.Fail(v.From, d.Now())
		}
		return nil, err
	}
	if begun.Line != nil {
		return nil, d.ask(w, r, begun.Line, is, v.Chinese)
	}
	in, err := d.signIn(r.Context(), *is, CallbackPath, v)
	if err != nil {
		return nil, err
	}
	in.To = cmp.Or(begun.To, "/console/")
	return in, nil
}

// begun returns the sign-in that a browser comes back from.
func (d *Door) begun(r *http.Request) (*attempt, error) {
	c, err := r.Cookie(d.cookie("", 0).Name)
	if err != nil {
		return nil, errBegin
	}
	begun := &attempt{}
	if !d.Seals.Open(cookie, c.Value, begun) || d.Now().Unix() >= begun.Until {
		return nil, errBegin
	}
	if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("state")), []byte(begun.Is.State)) != 1 {
		return nil, errBegin
	}
	return begun, nil
}

// person asks the provider who signed in. The provider's reason for a refusal is in the program's log, and in the admin
// log when it named a person.
func (d *Door) person(r *http.Request, begun *attempt, v Visit) (*access.Person, error) {
	code := r.URL.Query().Get("code")
	if code == "" {
		d.Out.WarnContext(r.Context(), "the identity provider did not sign a person in", "error", r.URL.Query().Get("error"), "request_id", v.RequestID)
		return nil, errNotGiven
	}
	is, err := d.People.Person(r.Context(), code, begun.Is)
	if err == nil {
		return is, nil
	}
	d.Out.WarnContext(r.Context(), "a person was not signed in", "err", err, "cause", errors.Unwrap(err), "address", v.address(), "request_id", v.RequestID)
	if is == nil {
		return nil, err
	}
	act := d.act(is, CallbackPath, v)
	if failed := d.Log.BeginAction(r.Context(), act); failed != nil {
		d.Out.ErrorContext(r.Context(), "a refused sign-in was not noted", "name", is.Name, "err", failed)
		return nil, err
	}
	p := web.ProblemOf(err)
	act.Status, act.Reason = p.StatusCode(), p.Reason.String()
	d.Log.EndAction(r.Context(), act)
	return nil, err
}

// signIn begins the session of a person. The admin log has it before, and the key and the person's subject after.
func (d *Door) signIn(ctx context.Context, who access.Person, target string, v Visit) (*Entered, error) {
	act := d.act(&who, target, v)
	if err := d.Log.BeginAction(ctx, act); err != nil {
		return nil, err
	}
	k, secret, is, err := d.Sessions.SignIn(ctx, access.SignIn{
		ID: access.NewSessionID(), Person: who, Until: d.Now().Add(sessions.Lasts), Address: v.address(), Agent: v.Agent,
	})
	if err != nil {
		p := web.ProblemOf(err)
		act.Status, act.Reason = p.StatusCode(), p.Reason.String()
		d.Log.EndAction(ctx, act)
		return nil, err
	}
	d.Pauses.Succeed(v.From)
	// Texts can always be written.
	act.After, _ = json.Marshal(map[string]string{"key_id": k.ID, "session_id": is.ID, "person": who.Subject})
	act.Status = http.StatusOK
	d.Log.EndAction(ctx, act)
	return &Entered{Key: k, Secret: secret, Session: is}, nil
}

// maxKey is what the admin log keeps of a caller's name, in bytes.
const maxKey = 191

// act is a sign-in as the admin log has it: under the person, since there is no key yet.
func (d *Door) act(is *access.Person, target string, v Visit) *access.AdminAction {
	key := "oidc:" + is.Name
	return &access.AdminAction{
		Key: key[:min(len(key), maxKey)], KeyName: is.Name, Role: is.Role, Address: v.address(), RequestID: v.RequestID, Action: "oidc-sign-in", Target: target,
	}
}

// Redirect sends a browser on. No one keeps the answer.
func Redirect(w http.ResponseWriter, to string) {
	h := w.Header()
	h["Cache-Control"], h["Location"], h["Referrer-Policy"] = web.NoStore, []string{to}, []string{"no-referrer"}
	w.WriteHeader(http.StatusFound)
}

// inside returns an address if it is a page of the console, and else nothing: a link must not lead through the sign-in
// to another site.
func inside(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > maxTo || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/console/") || strings.ContainsFunc(to, acts) {
		return ""
	}
	// The path is taken as browsers take it. They go back over an empty part as over any other, and Clean does not: no page
	// has one.
	if clean := path.Clean(u.Path); strings.Contains(u.Path, "//") || clean != "/console" && !strings.HasPrefix(clean, "/console/") || strings.HasPrefix(clean, Path) {
		return ""
	}
	return to
}

// acts reports whether browsers may read a character as another one, or drop it.
func acts(c rune) bool { return c == '\\' || unicode.IsControl(c) }

// sameHost reports whether a request's Host is that of an address. The port of the scheme may be left out.
func sameHost(host string, address *url.URL) bool {
	port := ":443"
	if address.Scheme == "http" {
		port = ":80"
	}
	return strings.EqualFold(strings.TrimSuffix(host, port), strings.TrimSuffix(address.Host, port))
}
