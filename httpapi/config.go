package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/httpapi/internal/signin"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/tokens"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/gate"
)

// Config configures the handler. Services is required, and at least one of
// Users, JWTSecret and AllowDevTokens; the zero value of any other field means
// the default named beside it.
type Config struct {
	// Services are what the handlers call; ServicesOf returns those of a node.
	Services Services
	// Users verifies user tokens, as tokens.Verifier does; default: HS256 tokens
	// under JWTSecret.
	Users Authenticator
	// JWTSecret is the HS256 secret of user tokens; at least 32 random bytes
	// are advised. Not used when Users is set.
	JWTSecret []byte
	// Approvals say which acts of administrators wait for a second one; default: none.
	Approvals access.ApprovalRules
	// Revoked tells tokens that count no longer; default: none does.
	Revoked Revoked
	// Places, Lotteries and Tickets are the waiting rooms, lotteries and tickets of
	// campaigns; nil means that no campaign has any.
	Places    gate.Places
	Lotteries gate.Lotteries
	Tickets   gate.Tickets
	// AllowDevTokens accepts `dev_<user>` as a user token: for development only.
	AllowDevTokens bool
	// TrustedProxies are the networks of proxies whose ProxyHeader names the client:
	// X-Forwarded-For, which is the default, or Forwarded (RFC 7239). Without them a
	// client's address is that of its connection.
	TrustedProxies []netip.Prefix
	ProxyHeader    string
	// Origins are the origins whose pages may call the API from browsers, such as
	// https://shop.example, or * for all; default: none but its own.
	Origins []string
	// Limits bound claims before the service is called, as limit.Limiter does;
	// default: none.
	Limits Limits
	// Calls bound how often a user calls the routes that are no claims and no orders, as
	// limit.Limiter does; default: no bound.
	Calls Limits
	// Strangers bound how often an address calls public routes without credentials, where
	// the answer is not in memory, as limit.Limiter does; default: no bound.
	Strangers Limits
	// RequestsPerAddress bounds the requests of an address that are under way over HTTP/2, where one connection carries
	// many; over HTTP/1.1 a bound on its connections is one on its requests. Default: no bound.
	RequestsPerAddress int
	// Overload refuses claims before their token and body are read; it is the Guard
	// of the service. Default: none.
	Overload Overload
	// Audiences has lists of users and followers; without it the API has no routes
	// for them, nor for announcements.
	Audiences Audiences
	// Logger receives failures inside; default: nothing is logged.
	Logger *slog.Logger
	// MaxBody is the most bytes of a body, default 64 KiB, those of users and strangers 16 KiB at most; MaxAdminBody
	// the most of one that carries items, default 32 MiB.
	MaxBody      int64
	MaxAdminBody int64
	// Tracer traces administrators' calls, and with TraceClaims claims, too; default:
	// nothing is traced.
	Tracer      Tracer
	TraceClaims bool
	// Version is the version that the OpenAPI document names; default "dev".
	Version string
	// Registry receives the metrics; default: one of its own, with those of the
	// Go runtime and the process.
	Registry *prometheus.Registry
	// Collectors are the metrics of other parts of the node, for the same registry.
	Collectors []prometheus.Collector
	// Gateway holds long-lived connections; nil for a server without them.
	Gateway Gateway
	// Meters measure campaigns for the console; without them there is no stream of
	// numbers.
	Meters Meters
	// Rehearsals run rushes for the console; nil where they are not allowed.
	Rehearsals Rehearsals
	// Diagnosis tells settings and findings of the server; without it the API has no
	// routes for them.
	Diagnosis Diagnosis
	// SessionKey seals the console's cookies, SessionKeySize bytes that all nodes share;
	// default: a random one, for this process alone. SecureCookies keeps them to HTTPS.
	SessionKey    []byte
	SecureCookies bool
	// People sign in at an identity provider, as access/oidc does; nil for none.
	People People
	// LoginCodes are good once for signing in; nil for none.
	LoginCodes LoginCodes
	// Stopping ends when the server stops: streams of the console end then. nil means
	// that they end with their clients alone.
	Stopping context.Context //nolint:containedctx // It is a signal, not a call's.
	// Storefront shows what is on offer at /; without it / leads to console and docs.
	Storefront bool
	// ImageOrigins are the origins from which pages show pictures of products, beside
	// the server's own.
	ImageOrigins []string
	// Now is the clock for tokens and GET /v1/time; default time.Now.
	Now func() time.Time
}

// People is an identity provider.
type People = signin.People

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.MaxBody = cmp.Or(c.MaxBody, 64<<10)
	c.MaxAdminBody = cmp.Or(c.MaxAdminBody, 32<<20)
	c.Version = cmp.Or(c.Version, "dev")
	c.ProxyHeader = cmp.Or(c.ProxyHeader, web.ForwardedFor)
	if c.Registry == nil {
		c.Registry = newRegistry()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Users == nil && len(c.JWTSecret) > 0 {
		c.Users = tokens.OfSecret(c.JWTSecret, c.Now)
	}
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
// The error is *dibs.Error of InvalidRequest with a fault for each field. Starting is
// refused: no fault is passed over.
func (c Config) Validate() error {
	var fs faults.List
	for _, name := range c.Services.missing() {
		fs.Must(false, "/Services/"+name, "is required")
	}
	fs.Must(c.Users != nil || c.AllowDevTokens, "/JWTSecret", "is required, unless Users or AllowDevTokens is set")
	fs.Must(c.ProxyHeader == web.ForwardedFor || c.ProxyHeader == web.Forwarded, "/ProxyHeader", "must be X-Forwarded-For or Forwarded")
	for _, o := range c.Origins {
		problem := web.CheckOrigin(o)
		fs.Must(problem == "", "/Origins", problem)
	}
	// A claim with its longest members must fit.
	fs.Must(c.MaxBody >= 1<<10, "/MaxBody", "must be at least 1024")
	fs.Must(c.MaxAdminBody >= c.MaxBody, "/MaxAdminBody", "must be at least MaxBody")
	return fs.Err()
}
