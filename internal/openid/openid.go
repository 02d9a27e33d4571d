// Package openid runs an OpenID provider within a test: zitadel's, with its example of a store. People sign in there
// without a page: the provider takes whom the test names.
package openid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client that the provider knows.
const (
	ClientID     = "dibs"
	ClientSecret = "the-secret-of-the-client"
)

// Person is one that can sign in. Groups is the claim groups: nil for a provider that does not send it.
type Person struct {
	ID, Email  string
	Unverified bool
	Groups     any
}

// Provider is a provider that listens on a free port of this machine. Its methods are safe for concurrent use; close it
// with Close.
//
// The server reads who, change and down anew for each request. server and store are set before the first.
type Provider struct {
	server *httptest.Server
	store  *store

	// who signs in next.
	who atomic.Pointer[Person]
	// change is made to the claims of each token that is given, and signed by the provider's own key.
	change atomic.Pointer[func(claims jwt.MapClaims)]
	down   atomic.Bool
}

// Start starts a provider that sends browsers back to an address.
func Start(callback string) (*Provider, error) {
	p := &Provider{}
	p.Is(Person{})
	p.Forge(nil)
	var serve http.Handler
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		serve.ServeHTTP(w, r)
	}))
	// The provider's own client type says of which redirects it approves.
	p.store = &store{provider: p}
	p.store.Storage = storage.NewStorageWithClients(p.store, map[string]*storage.Client{ClientID: storage.WebClient(ClientID, ClientSecret, callback)})
	provider, err := op.NewProvider(&op.Config{CodeMethodS256: true, AuthMethodPost: true}, p.store, op.StaticIssuer(p.server.URL), op.WithAllowInsecure())
	if err != nil {
		p.server.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	login := op.NewIssuerInterceptor(provider.IssuerFromRequest).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("authRequestID")
		if err := p.store.CheckUsernamePassword("", "", id); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(provider)(r.Context(), id), http.StatusFound)
	})
	mux.HandleFunc("GET /login/username", login)
	mux.HandleFunc("POST "+provider.TokenEndpoint().Relative(), func(w http.ResponseWriter, r *http.Request) { p.token(w, r, provider) })
	mux.Handle("/", provider)
	serve = mux
	return p, nil
}

// Close ends the provider.
func (p *Provider) Close() { p.server.Close() }

// URL is the provider's issuer.
func (p *Provider) URL() string { return p.server.URL }

// Is says who signs in from now on.
func (p *Provider) Is(who Person) { p.who.Store(&who) }

// Forge changes the claims of the tokens that are given from now on; nil for none.
func (p *Provider) Forge(change func(claims jwt.MapClaims)) { p.change.Store(&change) }

// Down has the provider answer 502 to everything, or no longer.
func (p *Provider) Down(down bool) { p.down.Store(down) }

// token answers as the provider does, with the change that the test asks for.
func (p *Provider) token(w http.ResponseWriter, r *http.Request, provider http.Handler) {
	answer := httptest.NewRecorder()
	provider.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	if change := *p.change.Load(); change != nil && answer.Code == http.StatusOK {
		var err error
		if body, err = p.forged(r.Context(), body, change); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	w.WriteHeader(answer.Code)
	// A test that went away misses nothing.
	_, _ = w.Write(body)
}

// forged signs a changed token by the provider's key.
func (p *Provider) forged(ctx context.Context, body []byte, change func(jwt.MapClaims)) ([]byte, error) {
	var answer map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		return nil, err
	}
	claims := jwt.MapClaims{}
	given, _ := answer["id_token"].(string)
	if _, _, err := jwt.NewParser().ParseUnverified(given, claims); err != nil {
		return nil, err
	}
	change(claims)
	key, err := p.store.SigningKey(ctx)
	if err != nil {
		return nil, err
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = key.ID()
	if answer["id_token"], err = token.SignedString(key.Key()); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// store is the example's store, with the test's person.
type store struct {
	*storage.Storage
	provider *Provider
}

// user is the person as the store knows people.
func (s *store) user() *storage.User {
	who := s.provider.who.Load()
	return &storage.User{ID: who.ID, Email: who.Email, EmailVerified: !who.Unverified}
}

// GetUserByID returns the person.
func (s *store) GetUserByID(string) *storage.User { return s.user() }

// GetUserByUsername returns the person: they need no name to sign in.
func (s *store) GetUserByUsername(string) *storage.User { return s.user() }

// ExampleClientID is of a client that the test does not use.
func (s *store) ExampleClientID() string { return "none" }

// SetUserinfoFromToken tells the rest of a person, with the groups.
func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	err := s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
	if groups := s.provider.who.Load().Groups; groups != nil {
		info.AppendClaims("groups", groups)
	}
	return err
}

// Browser is one that keeps cookies and follows no redirect by itself.
type Browser struct{ client *http.Client }

// NewBrowser returns a browser without cookies.
func NewBrowser() *Browser {
	// It never fails without options.
	jar, _ := cookiejar.New(nil)
	return &Browser{&http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Get asks for a page. The caller closes its body.
func (b *Browser) Get(ctx context.Context, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/html")
	return b.client.Do(r)
}

// maxSteps bounds the redirects of a sign-in.
const maxSteps = 10

// Until follows redirects from an address, and returns the first address for which there is said to be enough, without
// asking for it; or the answer that leads nowhere.
func (b *Browser) Until(ctx context.Context, address string, enough func(*url.URL) bool) (*url.URL, *http.Response, error) {
	for range maxSteps {
		at, err := url.Parse(address)
		if err != nil {
			return nil, nil, err
		}
		if enough(at) {
			return at, nil, nil
		}
		answer, err := b.Get(ctx, address)
		if err != nil {
			return nil, nil, err
		}
		to := answer.Header.Get("Location")
		if to == "" {
			return at, answer, nil
		}
		if err := answer.Body.Close(); err != nil {
			return nil, nil, err
		}
		next, err := at.Parse(to)
		if err != nil {
			return nil, nil, err
		}
		address = next.String()
	}
	return nil, nil, fmt.Errorf("openid: more than %d redirects, the last to %s", maxSteps, address)
}
