package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/httpapi/internal/nodemetrics"
	"github.com/dibs-dev/dibs/httpapi/internal/pages"
	"github.com/dibs-dev/dibs/internal/web"
)

// Handlers serve one API on one listener or on two.
type Handlers struct {
	// All serves every route.
	All http.Handler
	// Outer serves users only: routes for administrators answer 404, and API keys are
	// refused. It is for the public listener of a node whose All is on another one.
	Outer http.Handler
}

// New returns the handler of the API, or lists every fault of the config. Its
// metrics are registered in cfg.Registry, so that a registry serves one
// handler.
func New(cfg Config) (http.Handler, error) {
	h, err := NewHandlers(cfg)
	return h.All, err
}

// NewHandlers is New for two listeners.
func NewHandlers(cfg Config) (Handlers, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return Handlers{}, fmt.Errorf("httpapi: %w", err)
	}
	a, err := newAPI(&cfg)
	if err != nil {
		return Handlers{}, fmt.Errorf("httpapi: %w", err)
	}
	origins := &web.CrossOrigin{
		Origins: cfg.Origins, Methods: methods,
		Headers: []string{"Authorization", "Content-Type", web.HeaderKey, web.HeaderRequestID, "If-None-Match", headerDevice, headerTicket, headerAdmission, "Last-Event-ID"},
		Exposed: []string{web.HeaderRequestID, web.HeaderReplayed, "Retry-After", "ETag", "Location", "RateLimit", "RateLimit-Policy"},
	}
	return Handlers{All: origins.Handler(a.router), Outer: origins.Handler(a.outer)}, nil
}

// newAPI makes what the handlers share, and registers the routes of all groups.
func newAPI(cfg *Config) (*routes, error) {
	respond, err := web.NewResponder(cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("languages: %w", err)
	}
	collectors := append([]prometheus.Collector{nodemetrics.New(cfg.Services.Operations, cfg.Version)}, cfg.Collectors...)
	if cfg.Gateway != nil {
		collectors = append(collectors, cfg.Gateway)
	}
	m, err := newMetrics(cfg.Registry, collectors...)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	users, err := newUserTokens(cfg.Users, cfg.AllowDevTokens, cfg.Now)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	cache := pages.New(cfg.Services.Catalog, respond, cfg.Now)
	proxies := &web.Proxies{Trusted: cfg.TrustedProxies, Header: cfg.ProxyHeader}
	a := &routes{
		router: &router{
			ServeMux: http.NewServeMux(), outer: http.NewServeMux(), respond: respond, metrics: m, log: cfg.Logger,
			cached: map[string]cachedAnswer{
				"GET /v1/campaigns/{id}": cache.Campaign,
				"GET /v1/campaigns":      cache.List,
				"GET /c/{id}":            cache.HTML,
			},
		},
		auth:   &authenticator{users: users, keys: cfg.Services.Keys},
		acts:   &adminLog{log: cfg.Services.AdminLog, proxies: proxies, subjects: map[string]readSubject{}},
		memory: cfg.Services.Memory, proxies: proxies, tracer: cfg.Tracer, now: cfg.Now, maxBody: cfg.MaxBody, maxAdminBody: cfg.MaxAdminBody,
	}
	a.document = newDocument(a.router, cfg.Version)
	for _, g := range groups(a, cfg) {
		g.register()
	}
	a.HandleFunc("/", a.unknown)
	// The document is complete now.
	return a, a.serveDocument()
}

// group is a group of routes.
type group interface{ register() }

// groups returns the groups of routes that a config has.
func groups(a *routes, cfg *Config) []group {
	s := &cfg.Services
	take := &claimHandler{
		claimer: s.Claimer, auth: a.auth, proxies: a.proxies, overload: cfg.Overload, limits: cfg.Limits,
		maxBody: cfg.MaxBody, respond: a.respond, times: &a.metrics.claims,
	}
	if cfg.TraceClaims {
		take.tracer = cfg.Tracer
	}
	all := []group{
		&claimHandlers{routes: a, claims: s.Claims, take: take},
		&claimStepHandlers{routes: a, steps: s.ClaimSteps},
		&orderHandlers{routes: a, orders: s.Orders},
		&campaignHandlers{routes: a, campaigns: s.Campaigns},
		&pageHandlers{routes: a},
		&stockHandlers{routes: a, stock: s.Stock},
		&roomHandlers{routes: a, campaigns: s.PublicCampaigns, places: cfg.Places},
		&lotteryHandlers{routes: a, campaigns: s.PublicCampaigns, lotteries: cfg.Lotteries},
		&ticketHandlers{routes: a, campaigns: s.PublicCampaigns, tickets: cfg.Tickets},
		&productHandlers{routes: a, products: s.Products},
		&accountHandlers{routes: a, accounts: s.Accounts},
		&eventHandlers{routes: a, events: s.Events},
		&webhookHandlers{routes: a, webhooks: s.Webhooks},
		&adminLogHandlers{routes: a, log: s.AdminLog},
		&userHandlers{routes: a, users: s.Users},
		&operationHandlers{routes: a, operations: s.Operations, overload: cfg.Overload, version: cfg.Version},
	}
	if cfg.Gateway != nil {
		all = append(all, &gatewayHandlers{routes: a, gateway: cfg.Gateway})
	}
	if cfg.Audiences != nil {
		all = append(all, &audienceHandlers{routes: a, audiences: cfg.Audiences}, &announcementHandlers{routes: a, announcements: s.Announcements})
	}
	return all
}

// The bounds of a connection: generous for users on slow networks, and narrow for
// clients that only hold connections open.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = time.Minute
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// NewServer returns a server for a handler, with bounds on headers, bodies and
// idle connections. The caller listens, serves and shuts it down.
func NewServer(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
}
