package signin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/web"
)

// commandLine is a dibs login that waits for its code on this machine's loopback address.
type commandLine struct {
	Port uint16 `json:"p"`
	// Challenge is the SHA-256 of what the command line proves itself by, in base 64 (RFC 7636); State comes back to it.
	Challenge string `json:"c"`
	State     string `json:"s"`
}

const (
	// codeLasts is how long the person may look at the page that asks.
	codeLasts = 5 * time.Minute
	// maxState bounds the state of a command line, in bytes; a verifier has from 43 to 128 (RFC 7636).
	maxState, minVerifier, maxVerifier = 128, 43, 128
)

var errLine = dibs.Invalid(dibs.Fault{Problem: dibs.Text{
	EN: "port, challenge and state must be those of a command line: run dibs login", ZH: "port、challenge 和 state 必须由命令行提供：请运行 dibs login",
}})

// readLine reads what a command line says of itself.
func readLine(q url.Values) (*commandLine, error) {
	port, err := strconv.ParseUint(q.Get("port"), 10, 16)
	l := &commandLine{uint16(port), q.Get("challenge"), q.Get("state")}
	sum, bad := base64.RawURLEncoding.DecodeString(l.Challenge)
	// Decoding skips the ends of lines, of which the ledger must not keep any number.
	spelt := base64.RawURLEncoding.EncodeToString(sum) == l.Challenge
	if err != nil || port == 0 || bad != nil || !spelt || len(sum) != sha256.Size || !web.IsVisible(l.State, maxState) {
		return nil, errLine
	}
	return l, nil
}

// ask answers with a page whose link takes a code to the command line. The person decides: a link from another
// person could have begun this.
//
// The code goes to this machine alone, and is worth nothing without what only the command line knows.
func (d *Door) ask(w http.ResponseWriter, r *http.Request, l *commandLine, is *access.Person, zh bool) error {
	code, err := d.Sessions.Pend(r.Context(), *is, l.Challenge, d.Now().Add(codeLasts))
	if err != nil {
		return err
	}
	to := url.URL{
		Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(int(l.Port)), Path: "/", RawQuery: url.Values{"code": {code}, "state": {l.State}}.Encode(),
	}
	w.Header()["Cache-Control"] = web.NoStore
	return d.Page(w, r, to.String(), is.Name, zh)
}

// TokenBody is a command line's code, with what proves that it is the one that asked.
type TokenBody struct {
	Code     string `json:"code" maxLength:"2048" doc:"the code that the browser brought"`
	Verifier string `json:"verifier" maxLength:"128" doc:"what the challenge is the SHA-256 of"`
}

// TokenView is a person's key.
type TokenView struct {
	KeyID     string      `json:"key_id"`
	Name      string      `json:"name" doc:"the person's e-mail address, or what the identity provider gives in its place"`
	Role      access.Role `json:"role" enum:"viewer,editor,publisher,admin"`
	ExpiresAt time.Time   `json:"expires_at"`
	Secret    string      `json:"secret" doc:"the key itself, shown this once"`
}

// Remembered is the answer without the key.
func (v TokenView) Remembered() any {
	v.Secret = ""
	return v
}

// Exchange gives a command line the key of a person. *dibs.Error of Unauthenticated for a code that is not its own, is
// too old, or was used before.
func (d *Door) Exchange(ctx context.Context, body *TokenBody, v Visit) (TokenView, error) {
	if err := d.Pauses.Check(v.From, d.Now()); err != nil {
		return TokenView{}, err
	}
	is, err := d.identified(ctx, body)
	if err != nil {
		if web.ProblemOf(err).Reason == dibs.Unauthenticated {
			d.Pauses.Fail(v.From, d.Now())
		}
		return TokenView{}, err
	}
	in, err := d.signIn(ctx, is, TokenPath, v)
	if err != nil {
		return TokenView{}, err
	}
	return TokenView{KeyID: in.Key.ID, Name: in.Key.Name, Role: in.Key.Role, ExpiresAt: in.Key.ExpiresAt, Secret: in.Secret}, nil
}

// identified returns the person whom the provider identified for a command line, once: the code is used up.
func (d *Door) identified(ctx context.Context, body *TokenBody) (access.Person, error) {
	if len(body.Verifier) < minVerifier || len(body.Verifier) > maxVerifier {
		return access.Person{}, access.ErrCodeUsed
	}
	sum := sha256.Sum256([]byte(body.Verifier))
	return d.Sessions.TakePending(ctx, body.Code, base64.RawURLEncoding.EncodeToString(sum[:]), d.Now())
}
