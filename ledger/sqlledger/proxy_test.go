package sqlledger_test

import (
	"bytes"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a ledger and its server and cuts connections.
type proxy struct {
	t      *testing.T
	l      net.Listener
	server string

	mu    sync.Mutex
	links map[*link]bool
	// cutAt is what a client's words must end with for its connection to be
	// cut: before the server receives it, or after, so that the answer is lost.
	cutAt      []byte
	afterwards bool
	done       sync.WaitGroup
}

// newProxy starts a proxy for the server on a port of this machine.
func newProxy(t *testing.T, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, server: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), links: make(map[*link]bool)}
	p.done.Add(1)
	go p.accept()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.cutAll()
		p.done.Wait()
	})
	return p
}

// through is the address with the proxy in place of the server.
func (p *proxy) through(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Host = p.l.Addr().String()
	return u.String()
}

func (p *proxy) accept() {
	defer p.done.Done()
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			// The server is away: so is the proxy.
			_ = client.Close()
			continue
		}
		k := &link{client: client, server: server}
		p.mu.Lock()
		p.links[k] = true
		p.mu.Unlock()
		p.done.Add(2)
		go p.fromClient(k)
		go p.fromServer(k)
	}
}

// link is the two ends of a connection; mute is set when what the server says
// is not passed on any more.
type link struct {
	client, server net.Conn
	mute           atomic.Bool
}

// fromClient passes on what the client says, until one side ends.
func (p *proxy) fromClient(k *link) {
	defer p.done.Done()
	buf := make([]byte, 64<<10)
	for {
		n, err := k.client.Read(buf)
		cut, late := p.cuttingAt(buf[:n])
		if cut && !late {
			break
		}
		k.mute.Store(cut)
		if _, writeErr := k.server.Write(buf[:n]); writeErr != nil || err != nil {
			break
		}
	}
	p.forget(k)
}

// fromServer passes on what the server says. Once muted, its next word, which
// says that it has done what it was told, ends the connection.
func (p *proxy) fromServer(k *link) {
	defer p.done.Done()
	buf := make([]byte, 64<<10)
	for {
		n, err := k.server.Read(buf)
		if k.mute.Load() {
			break
		}
		if _, writeErr := k.client.Write(buf[:n]); writeErr != nil || err != nil {
			break
		}
	}
	p.forget(k)
}

// cuttingAt reports whether the bytes are those to cut at, once.
func (p *proxy) cuttingAt(b []byte) (cut, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutAt == nil || !bytes.HasSuffix(bytes.TrimRight(b, "\x00"), p.cutAt) {
		return false, false
	}
	p.cutAt = nil
	return true, p.afterwards
}

// cutNext makes the next connection end that says a text.
func (p *proxy) cutNext(said string, afterwards bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt, p.afterwards = []byte(said), afterwards
}

// forget closes both ends.
func (p *proxy) forget(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The other direction may have closed them already.
	_ = k.client.Close()
	_ = k.server.Close()
	delete(p.links, k)
}

// cutAll ends every connection.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.links {
		_ = k.client.Close()
		_ = k.server.Close()
	}
}

// awaitEnd returns when every connection that was cut has ended on both sides.
func (p *proxy) awaitEnd() {
	p.await(func(links int) bool { return links == 0 })
}

func (p *proxy) await(enough func(links int) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		p.mu.Lock()
		n := len(p.links)
		p.mu.Unlock()
		if enough(n) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the proxy still has %d connections", n)
		}
	}
}
