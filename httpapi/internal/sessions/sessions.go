// Package sessions turns API keys into the console's cookies, and back.
package sessions

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// Cookie is the name of the cookie over plain HTTP, and the purpose of what is sealed in it.
	Cookie = "dibs_session"
	// SecureCookie is its name over HTTPS. Browsers take a cookie of this prefix from the host itself over HTTPS only, for
	// all paths, so that neither another host of the domain nor a network can plant one.
	SecureCookie = "__Host-" + Cookie
	// Path is the address where a session begins and ends.
	Path = "/v1/session"
	// headerCSRF carries the token of changes.
	headerCSRF = "Dibs-Csrf"
	// Lasts is how long a session lasts, whatever is done in it.
	Lasts = 12 * time.Hour
	// KeySize is the length in bytes of the key that seals cookies.
	KeySize = 32
)

// Sessions seal and open cookies. A cookie holds the API key sealed, so that any node can open it and the session ends
// when the key is revoked; the browser cannot read it. It names the session too, which can be ended by itself. Safe for
// concurrent use; use New.
type Sessions struct {
	// sealing is replaced as a whole.
	sealing atomic.Pointer[cipher.AEAD]
	secure  bool
	now     func() time.Time
	// check returns *dibs.Error of Unauthenticated for a session that was ended.
	check func(ctx context.Context, id string) error
	// guard tells requests that other sites' pages make.
	guard *http.CrossOriginProtection
}

// Session is what a cookie holds.
type Session struct {
	// ID is the session's; a cookie of an older version has none, and counts no longer.
	ID  string `json:"i"`
	Key string `json:"k"`
	// CSRF is the token that changes carry.
	CSRF string `json:"c"`
	// Until is in seconds since 1970.
	Until int64 `json:"u"`
}

// New returns sessions that a key of KeySize bytes seals; nil means a random one, for this process alone. secure is for
// browsers that come over HTTPS. check returns *dibs.Error of Unauthenticated for a session that was ended.
func New(key []byte, secure bool, now func() time.Time, check func(ctx context.Context, id string) error) (*Sessions, error) {
	if key == nil {
		key = make([]byte, KeySize)
		// crypto/rand.Read never fails: it stops the program instead.
		_, _ = rand.Read(key)
	}
	s := &Sessions{secure: secure, now: now, check: check, guard: http.NewCrossOriginProtection()}
	return s, s.SetKey(key)
}

// SetKey has another key of KeySize bytes seal cookies. Those that another key has sealed are opened no more: whoever has
// a session signs in again.
func (s *Sessions) SetKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("SessionKey has %d bytes, not %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}
	s.sealing.Store(&gcm)
	return nil
}

// Begin makes the cookie of a session of an API key, which lasts until then.
func (s *Sessions) Begin(id, key string, until time.Time) (value string, is Session, err error) {
	is = Session{ID: id, Key: key, CSRF: rand.Text(), Until: until.Unix()}
	value, err = s.Seal(Cookie, is)
	return value, is, err
}

// Seal returns a value that only a node of this installation can read, by Open with the same purpose: no text that is
// sealed for one purpose passes for another.
func (s *Sessions) Seal(purpose string, v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString((*s.sealing.Load()).Seal(nil, nil, raw, []byte(purpose))), nil
}

// Open reads what Seal returned; false for anything else.
func (s *Sessions) Open(purpose, sealed string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = (*s.sealing.Load()).Open(nil, nil, raw, []byte(purpose))
	}
	return err == nil && json.Unmarshal(raw, into) == nil
}

// CookieOf returns the cookie of a value that Begin made; a negative age, in seconds, takes it away.
func (s *Sessions) CookieOf(value string, age int) *http.Cookie {
	c := &http.Cookie{Name: Cookie, Value: value, Path: "/v1", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if s.secure {
		// The prefix asks for all paths; Speak reads it on those of the API alone.
		c.Name, c.Path, c.Secure = SecureCookie, "/", true
	}
	return c
}

// Of returns the session of a request; false when there is none, or no longer.
func (s *Sessions) Of(r *http.Request) (is Session, ok bool) {
	c, err := r.Cookie(s.CookieOf("", 0).Name)
	if err != nil {
		return is, false
	}
	if !s.Open(Cookie, c.Value, &is) {
		return Session{}, false
	}
	return is, is.ID != "" && s.now().Unix() < is.Until
}

// Foreign reports whether a page of another site made a request.
func (s *Sessions) Foreign(r *http.Request) bool { return s.guard.Check(r) != nil }

// errEnded is of the reason of a session that was ended.
var errEnded = &dibs.Error{Reason: dibs.Unauthenticated}

var errCSRF = dibs.Fail(dibs.Forbidden, dibs.Text{
	EN: "a session's changes carry its csrf_token in the header Dibs-Csrf", ZH: "会话中的修改请求须在 Dibs-Csrf 头中携带 csrf_token",
})

// Speak returns the request with the session's key as its credentials, where it carries a session's cookie and none of
// its own; else the request as it is, as for a session that was ended. *dibs.Error of Forbidden for a change without the
// session's token, of Unavailable when it cannot be told whether the session was ended. Most requests have no cookie,
// claims among them, and cost a look at one header.
func (s *Sessions) Speak(r *http.Request) (*http.Request, error) {
	if len(r.Header["Cookie"]) == 0 || len(r.Header["Authorization"]) > 0 || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return r, nil
	}
	is, ok := s.Of(r)
	if !ok || r.Method == http.MethodPost && r.URL.Path == Path {
		return r, nil
	}
	if !safe(r.Method) && (s.Foreign(r) || subtle.ConstantTimeCompare([]byte(r.Header.Get(headerCSRF)), []byte(is.CSRF)) != 1) {
		return nil, errCSRF
	}
	if err := s.check(r.Context(), is.ID); errors.Is(err, errEnded) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	signed := r.WithContext(r.Context())
	signed.Header = maps.Clone(r.Header)
	signed.Header["Authorization"] = []string{"Bearer " + is.Key}
	return signed, nil
}

// Speaking returns the ID of the session that gave a request its key; empty for a key that came by itself.
func (s *Sessions) Speaking(r *http.Request) string {
	if is, ok := s.Of(r); ok && r.Header.Get("Authorization") == "Bearer "+is.Key {
		return is.ID
	}
	return ""
}

// Check returns nil for a session that lasts, and *dibs.Error of Unauthenticated for one that has ended.
func (s *Sessions) Check(ctx context.Context, id string) error { return s.check(ctx, id) }

// safe methods change nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
