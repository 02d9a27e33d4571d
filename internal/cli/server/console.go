package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/lab/rushes"
	"github.com/dibs-dev/dibs/livestats"
)

// console is what the server has for the console alone. Methods of nil do nothing.
type console struct {
	// stop ends its streams.
	stop context.CancelFunc
	// running are its goroutines, which end with stop.
	running sync.WaitGroup
	// desk runs rehearsals; nil where they are not allowed.
	desk  *rushes.Desk
	codes *loginCodes
}

// openConsole prepares what the console needs of the handlers.
func (s *Server) openConsole(ctx context.Context, cfg *httpapi.Config) (err error) {
	// Every node of a ledger opens the cookies of all.
	if cfg.SessionKey, err = s.node.Ledger.Secret(ctx, "session", httpapi.SessionKeySize); err != nil {
		return err
	}
	cfg.SecureCookies = s.certs != nil || s.c.BehindProxy
	registry := s.node.Service.Live.Registry
	measures := livestats.New(livestats.Config{
		Campaigns: registry, Stats: s.node.Service, Engine: s.node.Engine, Ledger: s.node.Ledger,
		EngineTimes: func() dibs.Tally { return s.node.Service.Claims.Metrics().Engine },
		Refused:     registry.Refused, Store: s.node.Engine.Abilities().Store, Logger: s.log,
	})
	cfg.Meters = measures
	s.console = &console{codes: &loginCodes{keys: map[string]string{}}}
	cfg.Stopping, s.console.stop = context.WithCancel(context.Background())
	s.console.running.Go(func() { measures.Run(cfg.Stopping) })
	if s.people, err = s.c.OIDC(); err != nil {
		return err
	}
	// A nil provider in an interface would not be nil.
	if s.people != nil {
		cfg.People = s.people
	}
	if s.opts.DevTokens {
		cfg.LoginCodes = s.console.codes
	}
	if s.opts.DevTokens || s.c.AllowRehearsals {
		s.console.desk = rushes.New(rushes.Config{Keys: s.node.Service.Access, JWTSecret: s.c.JWTSecret, Logger: s.log})
		cfg.Rehearsals = s.console.desk
	}
	return nil
}

// serve says which handler rehearsals load.
func (c *console) serve(h http.Handler) {
	if c.desk != nil {
		c.desk.Serve(h)
	}
}

// close ends its streams, and a rehearsal that runs.
func (c *console) close() {
	if c == nil {
		return
	}
	c.stop()
	c.running.Wait()
	if c.desk != nil {
		c.desk.Close()
	}
}

// ConsoleURL returns the console's address with a code that signs in with a key, once. Only a server that takes
// dev_ tokens takes codes.
func (s *Server) ConsoleURL(key string) string {
	return s.AdminURL() + "/console/#code=" + s.console.codes.add(key)
}

// loginCodes are codes that are good once, until the process ends. mu guards keys, by code.
type loginCodes struct {
	mu   sync.Mutex
	keys map[string]string
}

func (l *loginCodes) add(key string) string {
	code := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[code] = key
	return code
}

// Take returns the key of a code, and forgets the code.
func (l *loginCodes) Take(code string) (key string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, ok = l.keys[code]
	delete(l.keys, code)
	return key, ok
}
