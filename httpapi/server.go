package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/httpapi/internal/nodemetrics"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/httpapi/internal/viewcache"
	"github.com/dibs-dev/dibs/internal/web"
	site "github.com/dibs-dev/dibs/web"
)

// Handlers serve one API on one listener or on two.
type Handlers struct {
	// All serves every route.
	All http.Handler
	// Outer serves users only: routes for administrators answer 404, and API keys are
	// refused. It is for the public listener of a node whose All is on another one.
	Outer http.Handler

	sessions *sessions.Sessions
}

// SetSessionKey has another key take the place of Config.SessionKey: whoever has a session of the console signs in
// again. An error for a key that is not of SessionKeySize bytes, which changes nothing.
func (h Handlers) SetSessionKey(key []byte) error { return h.sessions.SetKey(key) }

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
	bound := func(next http.Handler) http.Handler {
		return origins.Handler(&streamBound{next: next, router: a.router, most: cfg.RequestsPerAddress})
	}
	return Handlers{All: bound(a.router), Outer: bound(a.outer), sessions: a.sessions}, nil
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
	users, err := newUserTokens(cfg.Users, cfg.Revoked, cfg.AllowDevTokens, cfg.Now)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	people, err := site.New(site.Options{Storefront: cfg.Storefront, Dev: cfg.AllowDevTokens, Images: cfg.ImageOrigins, People: cfg.People != nil})
	if err != nil {
		return nil, err
	}
	respond.ForPeople = problemPages(people, respond)
	sealing, err := sessions.New(cfg.SessionKey, cfg.SecureCookies, cfg.Now, cfg.Services.Sessions.Check)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	proxies := &web.Proxies{Trusted: cfg.TrustedProxies, Header: cfg.ProxyHeader}
	unknown := strangers{cfg.Strangers, proxies}
	cache := viewcache.New(cfg.Services.Catalog, people, respond, unknown.count, cfg.Now)
	a := &routes{
		router: &router{
			ServeMux: http.NewServeMux(), outer: http.NewServeMux(), respond: respond, metrics: m, log: cfg.Logger, sessions: sealing,
			proxies: proxies, now: cfg.Now,
			cached: map[string]cachedAnswer{
				"GET /v1/campaigns/{id}": cache.Campaign,
				"GET /v1/campaigns":      cache.List,
				"GET /c/{id}":            cache.HTML,
			},
		},
		auth:   &authenticator{users: users, keys: cfg.Services.Keys, claim: cfg.Services.Claims.Find, now: cfg.Now},
		acts:   &adminLog{log: cfg.Services.AdminLog, proxies: proxies, subjects: map[string]readSubject{}, now: cfg.Now, out: cfg.Logger},
		memory: cfg.Services.Memory, proxies: proxies, seconds: &secondPersons{kept: cfg.Services.Approvals, rules: cfg.Approvals, acts: map[string]approvedAct{}},
		calls: cfg.Calls, strangers: unknown, stranger: cache.Stranger, importing: make(chan struct{}, maxImports), tracer: cfg.Tracer, now: cfg.Now, maxBody: cfg.MaxBody, maxAdminBody: cfg.MaxAdminBody,
	}
	a.document = newDocument(a.router, cfg.Version)
	a.registerServices(cfg)
	a.registerPages(cfg, people)
	a.HandleFunc("/", a.unknown)
	// The document is complete now.
	return a, a.serveDocument()
}

// registerServices adds the routes of the services that a config has.
func (a *routes) registerServices(cfg *Config) {
	s := &cfg.Services
	take := &claimHandler{
		claimer: s.Claimer, auth: a.auth, proxies: a.proxies, overload: cfg.Overload, limits: cfg.Limits,
		maxBody: a.maxBodyOf(userOnly), respond: a.respond, times: &a.metrics.claims,
	}
	if cfg.TraceClaims {
		take.tracer = cfg.Tracer
	}
	(&claimHandlers{routes: a, claims: s.Claims, take: take}).register()
	(&claimStepHandlers{routes: a, steps: s.ClaimSteps}).register()
	(&orderHandlers{routes: a, orders: s.Orders, limits: cfg.Limits}).register()
	(&campaignHandlers{routes: a, campaigns: s.Campaigns}).register()
	(&stockHandlers{routes: a, stock: s.Stock}).register()
	registerRooms(a, s.PublicCampaigns, cfg.Places)
	(&lotteryHandlers{routes: a, campaigns: s.PublicCampaigns, lotteries: cfg.Lotteries}).register()
	registerTickets(a, s.PublicCampaigns, cfg.Tickets)
	registerProducts(a, s.Products)
	registerAccounts(a, s.Accounts)
	registerEvents(a, s.Events)
	registerEndpoints(a, s.Webhooks)
	registerDeliveries(a, s.Webhooks)
	registerAdminLog(a, s.AdminLog)
	registerKeys(a, s.KeyStore)
	registerRevocations(a, s.Revocations)
	registerApprovals(a)
	registerUsers(a, s.Users)
	(&operationHandlers{
		routes: a, operations: s.Operations, overload: cfg.Overload, version: cfg.Version, verifying: make(chan struct{}, maxVerifications),
	}).register()
	if cfg.Gateway != nil {
		(&gatewayHandlers{routes: a, gateway: cfg.Gateway}).register()
	}
	if cfg.Audiences != nil {
		registerAudiences(a, cfg.Audiences)
		registerAnnouncements(a, s.Announcements, s.Campaigns)
	}
}

// registerPages adds what people see: the pages, and the routes that only they call.
func (a *routes) registerPages(cfg *Config, people *site.Site) {
	s, on := &cfg.Services, &streams{routes: a, stopping: cfg.Stopping}
	(&pageHandlers{routes: a, site: people}).register()
	(&luckHandlers{routes: a, catalog: s.Catalog, claims: s.Claims, lists: luckLists{kept: map[string]*luckList{}}}).register()
	in := &sessionHandlers{routes: a, keys: s.Keys, kept: s.Sessions, codes: cfg.LoginCodes, secure: cfg.SecureCookies, rehearsals: cfg.Rehearsals != nil}
	in.door = newDoor(in, cfg.People, people)
	in.register()
	if cfg.Meters != nil {
		registerMeasures(on, s.Campaigns, cfg.Meters)
	}
	if cfg.Rehearsals != nil {
		(&rehearsalHandlers{streams: on, rehearsals: cfg.Rehearsals}).register()
	}
	if cfg.Diagnosis != nil {
		registerDiagnosis(a, cfg.Diagnosis)
	}
	if cfg.AllowDevTokens {
		(&paymentHandlers{routes: a, claims: s.Claims, steps: s.ClaimSteps}).register()
	}
}

// The bounds of a connection over HTTP/2, which carries many requests at a time. A browser's page needs some thirty at
// once, and clients that need more open another connection. What has come of bodies and is not read yet is bounded for
// each connection, and for each request, so that one whose body nobody reads does not stop the others.
const (
	maxStreams        = 64
	maxReceived       = 256 << 10
	maxStreamReceived = 32 << 10
)

// The bounds of a connection: generous for users on slow networks, and narrow for
// clients that only hold connections open.
// A body of 32 MiB within a minute needs some 4 Mbit/s; streams, files and operations
// that take long set deadlines of their own.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// NewServer returns a server for a handler, with bounds on headers, bodies, streams
// of HTTP/2 and idle connections. The caller listens, serves and shuts it down.
func NewServer(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxReceived, MaxReceiveBufferPerStream: maxStreamReceived},
	}
}
