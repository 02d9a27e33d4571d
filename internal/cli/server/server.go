package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/memory"
	"github.com/dibs-dev/dibs/tokens"
	"github.com/dibs-dev/dibs/tracing"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/store"
)

// server is a node with its HTTP server.
type server struct {
	c    *config.Config
	opts Options
	log  *slog.Logger
	Node *embedded.Node
	// faces are what it serves: the one for everybody, and that of administrators
	// when it is another.
	faces []face
	// hub has the long-lived connections.
	hub *gateway.Hub
	// tokens verifies the users' tokens; nil where none are signed.
	tokens *tokens.Verifier
	// tracer is nil where nobody traces.
	tracer *tracing.Tracer
	certs  *certificates
}

// face is an address with what is served there.
type face struct {
	http *http.Server
	ln   net.Listener
}

// Options are what a server is started with beside the settings.
type Options struct {
	Log *slog.Logger
	// Version is the program's.
	Version string
	// DevTokens accepts `dev_<user>`.
	DevTokens bool
}

// Start opens the node and the address.
func Start(ctx context.Context, c *config.Config, opts Options) (s *server, err error) {
	// The address comes first: a start that cannot serve must not load every
	// campaign, which costs each an epoch.
	log := opts.Log
	s = &server{c: c, opts: opts, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Abandon(ctx))
			s = nil
		}
	}()
	if err := s.listen(ctx); err != nil {
		// Who has the folder says more than who has the address.
		if owned := embedded.Owned(ctx, c.Node()); owned != nil {
			return s, store.ExplainOpen(c, owned, inUse(c))
		}
		return s, err
	}
	if s.tracer, err = openTracer(ctx, c, opts.Version, log); err != nil {
		return s, err
	}
	if s.Node, err = store.OpenNode(ctx, c, log, s.tracer, inUse(c)); err != nil {
		return s, err
	}
	if s.certs, err = openCertificates(c); err != nil {
		return s, err
	}
	if s.tokens, err = openTokens(ctx, c, log); err != nil {
		return s, err
	}
	return s, s.build()
}

// build makes the handlers and the servers of the addresses.
func (s *server) build() error {
	var err error
	gc := gateway.Config{Logger: s.log, DrainWithin: min(3*time.Second, s.c.Drain/3), MaxPerAddress: s.c.ConnectionLimit()}
	if s.tokens != nil {
		gc.Epoch = s.tokens.Epoch
	}
	if s.tracer != nil && s.c.TraceClaims {
		gc.Tracer = s.tracer
	}
	if s.hub, err = s.Node.OpenGateway(gc); err != nil {
		return err
	}
	cfg := httpapi.Config{
		Service: s.Node.Service, Places: s.Node.Rooms, Lotteries: s.Node.Rooms, Tickets: s.Node.Tickets, AllowDevTokens: s.opts.DevTokens, Logger: s.log, Version: s.opts.Version,
		TrustedProxies: config.Prefixes(s.c.TrustedProxies), ProxyHeader: s.c.ProxyHeader, Origins: s.c.CORSOrigins, Gateway: s.hub, Limits: s.Node.Limits, Overload: s.Node.Overload, Audiences: s.Node.Audiences,
		Collectors: s.Node.Collectors(),
	}
	if s.tokens != nil {
		cfg.Users = s.tokens
	}
	if s.tracer != nil {
		cfg.Tracer, cfg.TraceClaims = s.tracer, s.c.TraceClaims
	}
	h, err := httpapi.NewHandlers(cfg)
	if err != nil {
		return err
	}
	handlers := []http.Handler{h.All}
	if s.Apart() {
		handlers = []http.Handler{h.Outer, withProfiles(h.All)}
	}
	for i := range s.faces {
		server := httpapi.NewServer(s.faces[i].ln.Addr().String(), handlers[i])
		server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
		if s.certs != nil {
			server.TLSConfig = s.certs.settings()
		}
		s.faces[i].http = server
	}
	return nil
}

// listen takes the addresses.
func (s *server) listen(ctx context.Context) error {
	for _, address := range []string{s.c.Listen, s.c.AdminListen} {
		if address == "" {
			continue
		}
		ln, err := listen(ctx, address)
		if err != nil {
			return err
		}
		s.faces = append(s.faces, face{ln: ln})
	}
	return nil
}

// listen takes an address, or says what to do when somebody has it.
func listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is in use by another program: stop that one, or name another --listen (127.0.0.1:0 takes a free port)", address)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return ln, nil
}

// URL is the address of the server, with its real port.
func (s *server) URL() string { return s.urlOf(0) }

// AdminURL is where administrators call.
func (s *server) AdminURL() string { return s.urlOf(len(s.faces) - 1) }

// Apart reports whether administrators are served at an address of their own.
func (s *server) Apart() bool { return len(s.faces) > 1 }

func (s *server) urlOf(face int) string {
	if s.certs != nil {
		return "https://" + s.faces[face].ln.Addr().String()
	}
	return "http://" + s.faces[face].ln.Addr().String()
}

// Run serves until ctx ends, then drains. nil means that everything that was
// answered is kept and nothing was cut off.
func (s *server) Run(ctx context.Context) error {
	failed := make(chan error, len(s.faces))
	for _, f := range s.faces {
		go func() {
			if s.certs != nil {
				failed <- f.http.ServeTLS(f.ln, "", "")
				return
			}
			failed <- f.http.Serve(f.ln)
		}()
	}
	go memory.Ease(ctx)
	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watchFiles(watching)
	}()
	defer func() {
		stopWatching()
		<-watched
	}()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("serving: %w", err), s.stop(ctx))
	case <-ctx.Done():
	}
	return s.stop(ctx)
}

// Abandon ends a server that never ran.
func (s *server) Abandon(ctx context.Context) error {
	var errs []error
	for _, f := range s.faces {
		errs = append(errs, f.ln.Close())
	}
	if s.hub != nil {
		s.hub.Close()
	}
	if s.tokens != nil {
		s.tokens.Close()
	}
	if s.Node != nil {
		errs = append(errs, s.Node.Close(context.WithoutCancel(ctx)))
	}
	s.closeTracer(ctx)
	return errors.Join(errs...)
}

// stop takes no more connections, finishes the requests under way and settles,
// all within the drain time. What is not settled by then is no failure: it is
// in the journal, and the next start settles it.
func (s *server) stop(ctx context.Context) error {
	begun := time.Now()
	s.log.Info("stopping: finishing requests, then settling", "drain", s.c.Drain)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Drain)
	defer cancel()
	// Long-lived connections are asked to go elsewhere meanwhile.
	left := make(chan error, 1)
	go func() { left <- s.hub.Drain(drain) }()
	for _, f := range s.faces {
		if err := f.http.Shutdown(drain); err != nil {
			s.log.Warn("requests were cut off at the end of the drain time", "err", errors.Join(err, f.http.Close()))
		}
	}
	if s.tokens != nil {
		s.tokens.Close()
	}
	if err := <-left; err != nil {
		s.log.Warn("long-lived connections were cut off at the end of the drain time", "err", err)
	}
	s.hub.Close()
	err := s.Node.Close(drain)
	s.closeTracer(ctx)
	if onlyTimeout(err) {
		s.log.Warn("the drain time ended before everything was settled; the next start settles the rest")
		err = nil
	}
	if err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	s.log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond))
	return nil
}

// onlyTimeout reports whether an error is about nothing but a deadline.
func onlyTimeout(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			if !onlyTimeout(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}
