package sinks_test

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// gate is a network between a publisher and its broker that can stand still: it
// reads nothing then, as a broker that is stuck.
type gate struct {
	t        testing.TB
	listener net.Listener
	upstream string

	mu sync.Mutex
	// open is closed while bytes may pass.
	open chan struct{}
	// budget is how many bytes may pass to the broker before the gate closes by
	// itself; below 0 for any number. spent is closed then.
	budget int
	spent  chan struct{}
	conns  []net.Conn
	ended  chan struct{}
	copies sync.WaitGroup
}

// newGate opens a gate before an address, until the test ends.
func newGate(t testing.TB, upstream string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, listener: l, upstream: upstream, open: make(chan struct{}), budget: -1, spent: make(chan struct{}), ended: make(chan struct{})}
	close(g.open)
	g.copies.Go(g.accept)
	t.Cleanup(func() {
		close(g.ended)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		g.cut()
		g.copies.Wait()
	})
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", g.upstream)
		if err != nil {
			// The broker is not there: nor is the network.
			_ = c.Close()
			continue
		}
		g.mu.Lock()
		g.conns = append(g.conns, c, up)
		g.mu.Unlock()
		select {
		case <-g.ended:
			g.cut()
		default:
		}
		g.copies.Go(func() { g.pass(up, c, true) })
		g.copies.Go(func() { g.pass(c, up, false) })
	}
}

// pass copies what may pass, until one side ends.
func (g *gate) pass(to, from net.Conn, toBroker bool) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }()
	buf := make([]byte, 4<<10)
	for {
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		select {
		case <-open:
		case <-g.ended:
			return
		}
		n, err := from.Read(buf)
		if toBroker {
			n = g.spend(n)
		}
		if _, wErr := to.Write(buf[:n]); err != nil || wErr != nil {
			return
		}
	}
}

// spend takes bytes of the budget and returns how many may pass.
func (g *gate) spend(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.budget < 0 || n <= 0 {
		return n
	}
	n = min(n, g.budget)
	if g.budget -= n; g.budget == 0 {
		g.budget, g.open = -1, make(chan struct{})
		close(g.spent)
	}
	return n
}

// freeze lets nothing pass from now on.
func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// thaw lets new connections pass; the old ones are gone.
func (g *gate) thaw() {
	g.cut()
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// cut ends all connections.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		// One that has ended is no harm.
		_ = c.Close()
	}
	g.conns = nil
}

// freezeAfter lets so many bytes pass to the broker and then nothing, either
// way; the channel is closed when it does.
func (g *gate) freezeAfter(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget, g.spent = n, make(chan struct{})
	return g.spent
}
