package oidc

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/openid"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const console = "http://127.0.0.1:9"

var ann = openid.Person{ID: "ann-1", Email: "ann@shop.example", Groups: []string{"staff", "ops"}}

// rig is a provider with one who signs in there.
type rig struct {
	*testing.T
	at *openid.Provider
	p  *Provider
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	at, err := openid.Start(console + CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	at.Is(ann)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := Config{
		Issuer: at.URL(), ClientID: openid.ClientID, ClientSecret: openid.ClientSecret, Address: console, Transport: transport,
		Roles: map[string]access.Role{"staff": access.RoleViewer, "ops": access.RoleAdmin, "desk": access.RoleEditor},
	}
	if change != nil {
		change(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, at, p}
}

func attempt() access.Attempt {
	return access.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text()}
}

// code goes to the provider as a browser, and returns what it brings back.
func (r *rig) code(a access.Attempt) string {
	r.Helper()
	to, err := r.p.Address(r.Context(), a)
	if err != nil {
		r.Fatal(err)
	}
	back, answer, err := openid.NewBrowser().Until(r.Context(), to, func(u *url.URL) bool { return u.Path == CallbackPath })
	if err != nil || answer != nil {
		r.Fatalf("%v %v", err, answer)
	}
	if got := back.Query().Get("state"); got != a.State {
		r.Fatalf("the state is %q, not %q", got, a.State)
	}
	return back.Query().Get("code")
}

// refused fails unless an error is of a reason and its words have a part.
func (r *rig) refused(what string, err error, reason dibs.Reason, part string) {
	r.Helper()
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != reason {
		r.Errorf("%s: %v", what, err)
		return
	}
	if cause := errors.Unwrap(e); !strings.Contains(e.Detail.EN+" "+errText(cause), part) || e.Detail.ZH == "" {
		r.Errorf("%s: %q, because %v", what, e.Detail, cause)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPerson: a person signs in with the highest role of their groups, under their address.
func TestPerson(t *testing.T) {
	r := newRig(t, nil)
	a := attempt()
	is, err := r.p.Person(t.Context(), r.code(a), a)
	if want := (access.Person{Subject: r.at.URL() + " ann-1", Name: "ann@shop.example", Role: access.RoleAdmin}); err != nil || *is != want {
		t.Fatalf("%+v, %v", is, err)
	}
	// Roles are a map, in any order.
	for range 20 {
		is, err := r.p.person(&identity{claims: map[string]json.RawMessage{"groups": []byte(`["staff","ops","desk"]`)}})
		if err != nil || is.Role != access.RoleAdmin {
			t.Fatalf("%+v, %v", is, err)
		}
	}
	for name, c := range map[string]struct {
		who  openid.Person
		want access.Person
	}{
		"one group as a text":       {openid.Person{ID: "bob", Email: "bob@shop.example", Groups: "desk"}, access.Person{Name: "bob@shop.example", Role: access.RoleEditor}},
		"an address not verified":   {openid.Person{ID: "bob", Email: "ann@shop.example", Unverified: true, Groups: "desk"}, access.Person{Name: "ann@shop.example (unverified)", Role: access.RoleEditor}},
		"an address that is a trap": {openid.Person{ID: "bob", Email: "ann@shop.example\x1b[2K", Groups: "desk"}, access.Person{Name: "bob", Role: access.RoleEditor}},
		"no address":                {openid.Person{ID: "bob", Groups: "desk"}, access.Person{Name: "bob", Role: access.RoleEditor}},
	} {
		r.at.Is(c.who)
		a := attempt()
		is, err := r.p.Person(t.Context(), r.code(a), a)
		c.want.Subject = r.at.URL() + " bob"
		if err != nil || *is != c.want {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
	}
}

// TestNoRole: a person whose groups have no role, or are not told, is refused by name.
func TestNoRole(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		groups any
		says   string
	}{
		"no claim":       {nil, "does not say in the claim groups"},
		"no group":       {[]string{}, "none of your groups"},
		"other groups":   {[]string{"guests", "OPS"}, "none of your groups"},
		"numbers":        {[]int{1}, "does not say in the claim groups"},
		"something else": {map[string]string{"ops": "admin"}, "does not say in the claim groups"},
	} {
		r.at.Is(openid.Person{ID: "eve", Email: "eve@shop.example", Groups: c.groups})
		a := attempt()
		is, err := r.p.Person(t.Context(), r.code(a), a)
		r.refused(name, err, dibs.Forbidden, c.says)
		if is == nil || is.Name != "eve@shop.example" || is.Role != "" {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

// TestFalseTokens: what a provider, or an attacker in between, may send in place of a good token signs no one in.
func TestFalseTokens(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		change func(jwt.MapClaims)
		says   string
	}{
		"another nonce":        {func(m jwt.MapClaims) { m["nonce"] = "other" }, "nonce"},
		"no nonce":             {func(m jwt.MapClaims) { delete(m, "nonce") }, "nonce"},
		"another audience":     {func(m jwt.MapClaims) { m["aud"] = "other" }, "audience"},
		"given to another":     {func(m jwt.MapClaims) { m["aud"] = []string{"dibs", "other"}; m["azp"] = "other" }, `given to "other"`},
		"another issuer":       {func(m jwt.MapClaims) { m["iss"] = "https://other.example" }, "issued by a different provider"},
		"expired":              {func(m jwt.MapClaims) { m["exp"] = time.Now().Add(-time.Minute).Unix() }, "expired"},
		"not valid yet":        {func(m jwt.MapClaims) { m["nbf"] = time.Now().Add(time.Hour).Unix() }, "nbf"},
		"no subject":           {func(m jwt.MapClaims) { m["sub"] = "" }, "cannot be stored"},
		"a subject that traps": {func(m jwt.MapClaims) { m["sub"] = "a\nb" }, "cannot be stored"},
		"userinfo of another":  {func(m jwt.MapClaims) { m["sub"] = "other" }, "another person"},
		"a subject of a novel": {func(m jwt.MapClaims) { m["sub"] = strings.Repeat("x", 300) }, "cannot be stored"},
	} {
		r.at.Forge(c.change)
		a := attempt()
		is, err := r.p.Person(t.Context(), r.code(a), a)
		r.refused(name, err, dibs.Unauthenticated, c.says)
		if is != nil {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

// TestCodesAreGoodOnce: a code signs in once, and only with what was sent to get it.
func TestCodesAreGoodOnce(t *testing.T) {
	r := newRig(t, nil)
	a := attempt()
	code := r.code(a)
	if _, err := r.p.Person(t.Context(), code, a); err != nil {
		t.Fatal(err)
	}
	_, err := r.p.Person(t.Context(), code, a)
	r.refused("a replay", err, dibs.Unauthenticated, "invalid_grant")
	a = attempt()
	code = r.code(a)
	other := a
	other.Verifier = attempt().Verifier
	_, err = r.p.Person(t.Context(), code, other)
	r.refused("another verifier", err, dibs.Unauthenticated, "invalid_grant")
	_, err = r.p.Person(t.Context(), "made-up", attempt())
	r.refused("a made-up code", err, dibs.Unauthenticated, "did not accept")
	wrong := newRig(t, func(c *Config) { c.ClientSecret = "wrong" })
	a = attempt()
	_, err = wrong.p.Person(t.Context(), wrong.code(a), a)
	wrong.refused("a wrong secret", err, dibs.Unauthenticated, "invalid_client")
	wrong.p.SetClientSecret(openid.ClientSecret)
	a = attempt()
	if _, err = wrong.p.Person(t.Context(), wrong.code(a), a); err != nil {
		t.Errorf("with the right secret in place of the wrong one: %v", err)
	}
}

// TestProviderAway: a provider that is away is an error that says so, and is asked again: not for each sign-in, and
// without a new start of the service. The settings that were found before stand while it is away.
func TestProviderAway(t *testing.T) {
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	r.at.Down(true)
	_, err := r.p.Address(t.Context(), attempt())
	r.refused("away", err, dibs.Unavailable, "cannot be reached")
	r.at.Down(false)
	_, err = r.p.Address(t.Context(), attempt())
	r.refused("within a second", err, dibs.Unavailable, "cannot be reached")
	now = now.Add(failedFor)
	a := attempt()
	code := r.code(a)
	r.at.Down(true)
	_, err = r.p.Person(t.Context(), code, a)
	r.refused("away in between", err, dibs.Unavailable, "cannot be reached")
	now = now.Add(keepFor)
	if _, err := r.p.Address(t.Context(), attempt()); err != nil {
		t.Errorf("what was found does not stand: %v", err)
	}
	r.at.Down(false)
	now = now.Add(failedFor)
	if _, err := r.p.Address(t.Context(), attempt()); err != nil || !r.p.foundAt.Equal(now) {
		t.Errorf("it was not looked up again: %v", err)
	}
}

// TestHostileProvider: a provider that is found, and says what it must not, is not used.
func TestHostileProvider(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"another issuer":  {`{"issuer":"https://other.example","authorization_endpoint":"ISSUER/a","token_endpoint":"ISSUER/t","jwks_uri":"ISSUER/k"}`, "did not match"},
		"a plain address": {`{"issuer":"ISSUER","authorization_endpoint":"ISSUER/a","token_endpoint":"http://login.example/t","jwks_uri":"ISSUER/k"}`, "token_endpoint must begin with https"},
		"no address":      {`{"issuer":"ISSUER","authorization_endpoint":"ISSUER/a","token_endpoint":"ISSUER/t"}`, "jwks_uri must be an address"},
		"no JSON":         {`<html>`, "decode"},
		"without an end":  {`{"issuer":"` + strings.Repeat("x", maxAnswer) + `"}`, "decode"},
	} {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(strings.ReplaceAll(c.body, "ISSUER", server.URL)))
		}))
		r := newRig(t, func(cfg *Config) { cfg.Issuer = server.URL })
		_, err := r.p.Address(t.Context(), attempt())
		r.refused(name, err, dibs.Unavailable, c.says)
		server.Close()
	}
}
