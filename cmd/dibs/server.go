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
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/sqlledger"
)

// server is a node with its HTTP server.
type server struct {
	c    *config
	log  *slog.Logger
	node *embedded.Node
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
	ln, err := listen(ctx, c.Listen)
	if err != nil {
		// Who has the folder says more than who has the address.
		if owned := embedded.Owned(ctx, c.node()); owned != nil {
			return nil, explainOpen(c, owned, c.inUse())
		}
		return nil, err
	}
	node, err := openNode(ctx, c, log, c.inUse())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, node.Close(context.WithoutCancel(ctx)), ln.Close())
		}
	}()
	handler, err := httpapi.New(httpapi.Config{
		Service: node.Service, JWTSecret: []byte(c.JWTSecret), AllowDevTokens: devTokens, Logger: log, Version: thisBuild().Version,
	})
	if err != nil {
		return nil, err
	}
	s = &server{c: c, log: log, node: node, http: httpapi.NewServer(c.Listen, handler), ln: ln}
	s.http.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	return s, nil
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
func (s *server) url() string {
	if s.c.TLSCert != "" {
		return "https://" + s.ln.Addr().String()
	}
	return "http://" + s.ln.Addr().String()
}

// run serves until ctx ends, then drains. nil means that everything that was
// answered is kept and nothing was cut off.
func (s *server) run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() {
		if s.c.TLSCert != "" {
			failed <- s.http.ServeTLS(s.ln, s.c.TLSCert, s.c.TLSKey)
			return
		}
		failed <- s.http.Serve(s.ln)
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
	return errors.Join(s.ln.Close(), s.node.Close(context.WithoutCancel(ctx)))
}

// stop takes no more connections, finishes the requests under way and settles,
// all within the drain time. What is not settled by then is no failure: it is
// in the journal, and the next start settles it.
func (s *server) stop(ctx context.Context) error {
	begun := time.Now()
	s.log.Info("stopping: finishing requests, then settling", "drain", s.c.Drain)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Drain)
	defer cancel()
	if err := s.http.Shutdown(drain); err != nil {
		s.log.Warn("requests were cut off at the end of the drain time", "err", errors.Join(err, s.http.Close()))
	}
	err := s.node.Close(drain)
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
