package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// dialsAtOnce bounds how many connections are being opened at one moment. The
// kernel queues a few thousand unaccepted ones at most; beyond that a rush of
// dials would measure the kernel's patience instead of dibs.
const dialsAtOnce = 128

// connections opens the TCP connections of the load, most of them before it
// begins, so that a wave hits the server at once.
// It is safe for concurrent use: ready and gate are channels. A connection in ready
// is nobody's.
type connections struct {
	dialer net.Dialer
	gate   chan struct{}
	ready  chan net.Conn
}

func newConnections(most int, timeout time.Duration) *connections {
	return &connections{
		dialer: net.Dialer{Timeout: timeout},
		gate:   make(chan struct{}, dialsAtOnce),
		ready:  make(chan net.Conn, most),
	}
}

// client returns an HTTP client that keeps at most most connections and holds
// all of them open.
func (c *connections) client(most int, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: once{&http.Transport{
			DialContext: c.dial, MaxConnsPerHost: most, MaxIdleConnsPerHost: most, MaxIdleConns: most,
			IdleConnTimeout: time.Minute, DisableCompression: true,
		}},
		// A redirect would be a second request, and a token at another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// once keeps the transport from repeating requests by itself.
type once struct{ *http.Transport }

// RoundTrip sends a request once. With a way to read its body again, the
// transport would quietly repeat a request that has an Idempotency-Key when its
// connection breaks, and nobody would count the lost answer.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.GetBody != nil {
		// A round tripper may not change the request that it was given.
		r = r.Clone(r.Context())
		r.GetBody = nil
	}
	return o.Transport.RoundTrip(r)
}

// dial hands out a connection opened before, or opens one.
func (c *connections) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	select {
	case conn := <-c.ready:
		return conn, nil
	default:
		return c.open(ctx, network, addr)
	}
}

func (c *connections) open(ctx context.Context, network, addr string) (net.Conn, error) {
	select {
	case c.gate <- struct{}{}:
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.dialer.DialContext(ctx, network, addr)
}

// prepare opens n connections to addr ahead of the load; opened is called
// after each.
// The first error ends it. Connections that were opened by then stay in ready, and
// close closes them.
func (c *connections) prepare(ctx context.Context, addr string, n int, opened func()) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialsAtOnce)
	for range n {
		group.Go(func() error {
			conn, err := c.open(ctx, "tcp", addr)
			if err != nil {
				return fmt.Errorf("opening %d connections to %s: %w", n, addr, err)
			}
			c.ready <- conn
			opened()
			return nil
		})
	}
	return group.Wait()
}

// close closes the connections that nobody took.
func (c *connections) close() error {
	var errs []error
	for {
		select {
		case conn := <-c.ready:
			errs = append(errs, conn.Close())
		default:
			return errors.Join(errs...)
		}
	}
}
