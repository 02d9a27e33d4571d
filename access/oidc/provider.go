package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

const (
	// callTimeout bounds one call of the provider, maxAnswer what is read of its answer, in bytes.
	callTimeout = 10 * time.Second
	maxAnswer   = 1 << 20
	// keepFor is how long the provider's addresses and keys are believed: a key that it withdraws signs no one in for
	// longer than that.
	keepFor = 5 * time.Minute
	// failedFor is how long a failed look-up stands: sign-ins in numbers must not become calls in numbers.
	failedFor = time.Second
)

// Provider signs people in at one OpenID provider. It is safe for concurrent use.
type Provider struct {
	cfg      Config
	callback string
	client   *http.Client
	// secret is the client's; empty for a public client.
	secret atomic.Pointer[string]
	// turn is held by the one that looks the provider up, and guards the fields below.
	turn     chan struct{}
	found    *endpoints
	foundAt  time.Time
	failed   error
	failedAt time.Time
}

// endpoints are what the provider says of itself.
type endpoints struct {
	*oidc.Provider
	style oauth2.AuthStyle
}

// New returns a provider of settings, and connects to nothing. The error lists all that is wrong with them.
func New(c Config) (*Provider, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	p := &Provider{
		cfg: c, callback: c.Address + CallbackPath, turn: make(chan struct{}, 1),
		client: &http.Client{
			Timeout: callTimeout, Transport: bounded{c.Transport},
			// A redirect would take the client's secret, and the code, to an address that is in no setting.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	p.SetClientSecret(c.ClientSecret)
	return p, nil
}

// SetClientSecret replaces the secret that this service has at the provider. Sign-ins that
// are under way go on with the new one.
func (p *Provider) SetClientSecret(secret string) { p.secret.Store(&secret) }

// bounded cuts answers that are too long.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = cut{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

type cut struct {
	io.Reader
	io.Closer
}

// look returns what the provider says of itself. It looks again after keepFor; while that fails, what was found before
// stands.
func (p *Provider) look(ctx context.Context) (*endpoints, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := p.cfg.Now()
	if p.found != nil && now.Sub(p.foundAt) < keepFor {
		return p.found, nil
	}
	if p.failed == nil || now.Sub(p.failedAt) >= failedFor {
		found, err := p.discover(ctx)
		if err == nil {
			p.found, p.foundAt, p.failed = found, p.cfg.Now(), nil
			return found, nil
		}
		if ctx.Err() != nil {
			// The caller went away: that says nothing of the provider.
			return nil, err
		}
		p.failed, p.failedAt = err, p.cfg.Now()
	}
	if p.found != nil {
		return p.found, nil
	}
	return nil, p.failed
}

func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	var says struct {
		Auth    string   `json:"authorization_endpoint"`
		Token   string   `json:"token_endpoint"`
		Keys    string   `json:"jwks_uri"`
		User    string   `json:"userinfo_endpoint"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, err
	}
	for name, address := range map[string]string{"authorization_endpoint": says.Auth, "token_endpoint": says.Token, "jwks_uri": says.Keys, "userinfo_endpoint": says.User} {
		if address == "" && name == "userinfo_endpoint" {
			continue
		}
		// A provider behind TLS that names a plain address would have the client's secret sent in the open.
		if err := checkEndpoint(address); err != nil {
			return nil, fmt.Errorf("its %s %w", name, err)
		}
	}
	style := oauth2.AuthStyleInHeader
	if p.cfg.ClientSecret == "" || len(says.Methods) > 0 && !slices.Contains(says.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &endpoints{found, style}, nil
}

// checkEndpoint is checkURL for an address that may have a query.
func checkEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("is no address")
	}
	u.RawQuery, u.ForceQuery = "", false
	return checkURL(u.String())
}

// flow is the code flow at the provider.
func (p *Provider) flow(at *endpoints) *oauth2.Config {
	endpoint := at.Endpoint()
	endpoint.AuthStyle = at.style
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: *p.secret.Load(), Endpoint: endpoint, RedirectURL: p.callback,
		Scopes: append([]string{oidc.ScopeOpenID}, p.cfg.Scopes...),
	}
}

// Address returns where a browser goes to sign in. *dibs.Error of Unavailable while the provider cannot be reached.
func (p *Provider) Address(ctx context.Context, a access.Attempt) (string, error) {
	at, err := p.look(ctx)
	if err != nil {
		return "", p.away(err)
	}
	return p.flow(at).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Console returns the address at which browsers reach the console.
func (p *Provider) Console() *url.URL {
	// It was read by New.
	u, _ := url.Parse(p.cfg.Address)
	return u
}

// Person returns who signed in, by the code that the provider gave the browser. *dibs.Error of Unauthenticated for a
// code or a token that is not good, of Forbidden for a person without a role, of Unavailable while the provider cannot
// be reached. The error has the provider's words, for the log, and names a person without a role.
func (p *Provider) Person(ctx context.Context, code string, a access.Attempt) (*access.Person, error) {
	at, err := p.look(ctx)
	if err != nil {
		return nil, p.away(err)
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.flow(at).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		// The body may repeat what was sent.
		return nil, refusal(errRefused, fmt.Errorf("the provider answered %d %q", refused.Response.StatusCode, refused.ErrorCode))
	}
	if err != nil {
		return nil, p.away(err)
	}
	is, err := p.read(ctx, at, token, a)
	if err != nil {
		return nil, err
	}
	return p.person(is)
}

// The refusals, each once more in the program's log with what the provider said.
var (
	errAway    = dibs.Text{EN: "the identity provider cannot be reached: try again, or sign in with an API key", ZH: "无法连接身份提供方：请重试，或使用 API 密钥登录"}
	errRefused = dibs.Text{EN: "the identity provider did not accept the sign-in: begin again", ZH: "身份提供方未接受本次登录，请重新登录"}
	errToken   = dibs.Text{EN: "the answer of the identity provider is not valid: begin again", ZH: "身份提供方的响应无效，请重新登录"}
)

func (p *Provider) away(err error) error {
	return &dibs.Error{Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: failedFor, Detail: errAway, Cause: fmt.Errorf("the identity provider at %s: %w", p.cfg.Issuer, err)}
}

// refusal is of Unauthenticated, with a cause.
func refusal(detail dibs.Text, cause error) error {
	return &dibs.Error{Reason: dibs.Unauthenticated, Detail: detail, Cause: cause}
}

// visible reports whether a text is of visible ASCII, as the names of subjects are.
func visible(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
