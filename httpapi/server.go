package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Handlers are the two faces of one API.
type Handlers struct {
	// All serves everything to everybody who may have it.
	All http.Handler
	// Outer serves users alone: what is for administrators is not there, and API
	// keys are worth nothing. It is for the listener that the world can reach when
	// All is on another one.
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
	a, err := newAPI(cfg)
	if err != nil {
		return Handlers{}, err
	}
	origins := a.cfg.Origins
	return Handlers{All: crossOrigin(origins, a.routes), Outer: crossOrigin(origins, a.routes.outer)}, nil
}

func newAPI(cfg Config) (*api, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	a := &api{
		cfg: cfg, svc: cfg.Service, log: cfg.Logger, examples: map[string]string{},
		proxies: proxies{trusted: cfg.TrustedProxies, header: cfg.ProxyHeader},
	}
	a.ids.init()
	var err error
	if a.metrics, err = newMetrics(&cfg); err != nil {
		return nil, fmt.Errorf("httpapi: metrics: %w", err)
	}
	if a.lang, err = newLanguages(); err != nil {
		return nil, fmt.Errorf("httpapi: languages: %w", err)
	}
	if a.users, err = newUserTokens(&cfg); err != nil {
		return nil, fmt.Errorf("httpapi: tokens: %w", err)
	}
	a.routes = &routes{ServeMux: http.NewServeMux(), outer: http.NewServeMux(), api: a}
	a.huma = humago.New(a.routes, apiConfig(cfg.Version))
	a.schemas = a.huma.OpenAPI().Components.Schemas
	a.registerShelf()
	a.registerCatalog()
	a.registerClaims()
	a.registerOrders()
	a.registerLife()
	a.registerAccounts()
	a.registerCampaigns()
	a.registerImport()
	a.registerCodes()
	a.registerQueue()
	a.registerLottery()
	a.registerTickets()
	a.registerProducts()
	a.registerRegular()
	a.registerEvents()
	a.registerAudit()
	a.registerUsers()
	if err := a.registerGateway(); err != nil {
		return nil, fmt.Errorf("httpapi: gateway: %w", err)
	}
	a.registerAudiences()
	a.registerOperations()
	if err := a.registerDocuments(); err != nil {
		return nil, fmt.Errorf("httpapi: documents: %w", err)
	}
	a.routes.HandleFunc("/", a.routes.unknown)
	return a, nil
}

// The bounds of a connection. They are generous for people and narrow for
// those who only hold connections open.
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
