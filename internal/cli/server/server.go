package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs/access/oidc"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/tokens"
	"github.com/dibs-dev/dibs/tracing"
)

// Options are what a server is started with beside the settings.
type Options struct {
	Log *slog.Logger
	// Version is the program's.
	Version string
	// DevTokens accepts the token dev_<user> for any user.
	DevTokens bool
	// Diagnosis is what administrators are told of settings and findings; nil for nothing.
	Diagnosis httpapi.Diagnosis
}

// Server is a node with its HTTP server. Start returns one that listens; Run serves,
// and must be called once, or else Close.
type Server struct {
	c    *config.Config
	opts Options
	log  *slog.Logger
	node *node.Node
	// faces are one address for all clients, or one for users and then one for
	// administrators.
	faces []face
	// outer is the listener of the first of them.
	outer *addressBound
	// hub holds the long-lived connections.
	hub *gateway.Hub
	// tokens, tracer and certs are nil where the settings ask for none.
	tokens *tokens.Verifier
	tracer *tracing.Tracer
	certs  *certificates
	// strangers bounds calls without a token; nil where nothing does.
	strangers *limit.Limiter
	// people is the identity provider; nil without one.
	people *oidc.Provider
	// console holds what only the console uses; nil before the handlers are made.
	console *console
}

// Start takes the addresses and opens the node.
func Start(ctx context.Context, c *config.Config, opts Options) (s *Server, err error) {
	s = &Server{c: c, opts: opts, log: opts.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(ctx))
			s = nil
		}
	}()
	// The address comes first: a start that cannot serve must not load every
	// campaign, which costs each an epoch.
	if err := s.listen(ctx); err != nil {
		// A process that has the data folder is the more useful reason: it is likely to
		// have the address too.
		if owned := node.Owned(ctx, c.Node()); owned != nil {
			return s, store.Explain(c, owned, store.InUse(c))
		}
		return s, err
	}
	if s.tracer, err = openTracer(ctx, c, opts); err != nil {
		return s, err
	}
	if s.node, err = store.OpenNode(ctx, c, s.log, s.tracer, store.InUse(c)); err != nil {
		return s, err
	}
	if s.certs, err = openCertificates(c); err != nil {
		return s, err
	}
	if s.tokens, err = openTokens(ctx, c, s.log); err != nil {
		return s, err
	}
	return s, s.build(ctx)
}

// Node returns the node, which is open until Run or Close ends.
func (s *Server) Node() *node.Node { return s.node }

// openLimits makes the limits of calls besides claims. They share nothing with other nodes,
// so that there is nothing to close.
func (s *Server) openLimits(cfg *httpapi.Config) error {
	if calls, some := s.c.CallLimits(); some {
		limiter, err := limit.New(calls)
		if err != nil {
			return err
		}
		cfg.Calls = limiter
	}
	if strangers, some := s.c.StrangerLimits(); some {
		lists, err := s.c.Lists()
		if err != nil {
			return err
		}
		strangers.Lists = limit.Lists{Allowed: lists.Allowed}
		if s.strangers, err = limit.New(strangers); err != nil {
			return err
		}
		cfg.Strangers = s.strangers
	}
	return nil
}

// build makes the handlers and the servers of the addresses.
func (s *Server) build(ctx context.Context) error {
	if err := s.openHub(); err != nil {
		return err
	}
	cfg := httpapi.Config{
		Services: httpapi.ServicesOf(s.node.Service), Places: s.node.Rooms, Lotteries: s.node.Rooms, Tickets: s.node.Tickets, Audiences: s.node.Audiences,
		Gateway: s.hub, Limits: s.node.Limits, Overload: s.node.Overload, Collectors: append(s.node.Collectors(), s.outer),
		TrustedProxies: config.Prefixes(s.c.TrustedProxies), ProxyHeader: s.c.ProxyHeader, Origins: s.c.CORSOrigins,
		RequestsPerAddress: s.c.OpenConnectionLimit(), AllowDevTokens: s.opts.DevTokens, Revoked: s.node.Revocations.Has, Logger: s.log, Version: s.opts.Version, Diagnosis: s.opts.Diagnosis,
	}
	var err error
	if cfg.Approvals, err = s.c.Approvals(); err != nil {
		return err
	}
	if s.tokens != nil {
		cfg.Users = s.tokens
	}
	if err := s.openLimits(&cfg); err != nil {
		return err
	}
	if s.tracer != nil {
		cfg.Tracer, cfg.TraceClaims = s.tracer, s.c.TraceClaims
	}
	cfg.Storefront, cfg.ImageOrigins = s.c.Storefront || s.opts.DevTokens, s.c.ImageOrigins
	if err := s.openConsole(ctx, &cfg); err != nil {
		return err
	}
	h, err := httpapi.NewHandlers(cfg)
	if err != nil {
		return err
	}
	s.console.serve(h.All)
	s.node.WatchKey("session", cfg.SessionKey, h.SetSessionKey)
	handlers := []http.Handler{h.All}
	if len(s.faces) > 1 {
		handlers = []http.Handler{h.Outer, withProfiles(h.All)}
	}
	respond, err := web.NewResponder(s.log)
	if err != nil {
		return err
	}
	for i := range s.faces {
		server := httpapi.NewServer(s.faces[i].ln.Addr().String(), handlers[i])
		server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
		if s.certs != nil {
			server.TLSConfig = s.certs.config()
		}
		if i > 0 {
			// Programs of administrators are trusted, and send files: over HTTP/2 they have net/http's own bounds.
			server.HTTP2 = nil
			if s.certs != nil {
				server.TLSConfig = s.certs.adminConfig()
				s.faces[i].ln = s.certs.listener(s.faces[i].ln)
				server.Handler = s.certs.recheck(server.Handler, respond)
			}
		}
		s.faces[i].http = server
	}
	return nil
}

// openHub opens what holds the long-lived connections.
func (s *Server) openHub() (err error) {
	// A third of the drain time, at most, is theirs: the node settles in the rest.
	cfg := gateway.Config{Logger: s.log, Revoked: s.node.Revocations.Has, DrainWithin: min(3*time.Second, s.c.Drain/3), MaxPerAddress: s.c.ConnectionLimit()}
	if s.tokens != nil {
		cfg.Epoch = s.tokens.Epoch
	}
	if s.tracer != nil && s.c.TraceClaims {
		cfg.Tracer = s.tracer
	}
	s.hub, err = gateway.Open(s.node, cfg)
	return err
}
