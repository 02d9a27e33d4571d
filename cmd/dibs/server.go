package main

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
	"github.com/dibs-dev/dibs/sqlledger"
	"github.com/dibs-dev/dibs/tokens"
	"github.com/dibs-dev/dibs/tracing"
)

// server is a node with its HTTP server.
type server struct {
	c    *config
	log  *slog.Logger
	node *embedded.Node
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

// inUse tells what to do when another process has the store.
func (c *config) inUse() string {
	other := "--data"
	if sqlledger.InServer(c.Ledger) {
		other = "--ledger"
	}
	return "one process at a time may use it; stop that one, or name another " + other
}

// startServer opens the node and the address. devTokens accepts `dev_<user>`.
func startServer(ctx context.Context, c *config, log *slog.Logger, devTokens bool) (s *server, err error) {
	// The address comes first: a start that cannot serve must not load every
	// campaign, which costs each an epoch.
	s = &server{c: c, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abandon(ctx))
			s = nil
		}
	}()
	if err := s.listen(ctx); err != nil {
		// Who has the folder says more than who has the address.
		if owned := embedded.Owned(ctx, c.node()); owned != nil {
			return s, explainOpen(c, owned, c.inUse())
		}
		return s, err
	}
	if s.tracer, err = c.openTracer(ctx, log); err != nil {
		return s, err
	}
	if s.node, err = openNode(ctx, c, log, s.tracer, c.inUse()); err != nil {
		return s, err
	}
	if s.certs, err = c.certificates(); err != nil {
		return s, err
	}
	if s.tokens, err = c.openTokens(ctx, log); err != nil {
		return s, err
	}
	return s, s.build(devTokens)
}

// build makes the handlers and the servers of the addresses.
func (s *server) build(devTokens bool) error {
	var err error
	gc := gateway.Config{Logger: s.log, DrainWithin: min(3*time.Second, s.c.Drain/3), MaxPerAddress: s.c.connectionsPerAddress()}
	if s.tokens != nil {
		gc.Epoch = s.tokens.Epoch
	}
	if s.tracer != nil && s.c.TraceClaims {
		gc.Tracer = s.tracer
	}
	if s.hub, err = s.node.OpenGateway(gc); err != nil {
		return err
	}
	cfg := httpapi.Config{
		Services: httpapi.ServicesOf(s.node.Service), Places: s.node.Rooms, Lotteries: s.node.Rooms, Tickets: s.node.Tickets, AllowDevTokens: devTokens, Logger: s.log, Version: thisBuild().Version,
		TrustedProxies: prefixes(s.c.TrustedProxies), ProxyHeader: s.c.ProxyHeader, Origins: s.c.CORSOrigins, Gateway: s.hub, Limits: s.node.Limits, Overload: s.node.Overload, Audiences: s.node.Audiences,
		Collectors: s.node.Collectors(),
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
	if len(s.faces) > 1 {
		handlers = []http.Handler{h.Outer, withProfiles(h.All)}
	}
	for i := range s.faces {
		server := httpapi.NewServer(s.faces[i].ln.Addr().String(), handlers[i])
		server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
		if s.certs != nil {
			server.TLSConfig = s.certs.config()
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

// url is the address of the server, with its real port.
func (s *server) url() string { return s.urlOf(0) }

// adminURL is where administrators call.
func (s *server) adminURL() string { return s.urlOf(len(s.faces) - 1) }

func (s *server) urlOf(face int) string {
	if s.certs != nil {
		return "https://" + s.faces[face].ln.Addr().String()
	}
	return "http://" + s.faces[face].ln.Addr().String()
}

// run serves until ctx ends, then drains. nil means that everything that was
// answered is kept and nothing was cut off.
func (s *server) run(ctx context.Context) error {
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

// abandon ends a server that never ran.
func (s *server) abandon(ctx context.Context) error {
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
	if s.node != nil {
		errs = append(errs, s.node.Close(context.WithoutCancel(ctx)))
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
	err := s.node.Close(drain)
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
