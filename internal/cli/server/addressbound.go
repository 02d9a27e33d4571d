package server

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/web"
)

// addressBound is a listener that takes a bounded number of connections of an address at a time, and closes the others
// at once: a connection costs memory and an open file before it has sent anything, so no limit of calls bounds it.
type addressBound struct {
	net.Listener
	// most is how many an address may have; below 1 for any number.
	most int
	// trusted are networks of proxies, whose connections are those of many clients.
	trusted []netip.Prefix
	log     *slog.Logger
	open    web.AddressCounts
	// refused counts the connections that were closed; toldAt is when the log was told last, in nanoseconds since 1970.
	refused, toldAt atomic.Int64
}

// newAddressBound bounds what a listener accepts as the settings say.
func newAddressBound(ln net.Listener, c *config.Config, log *slog.Logger) *addressBound {
	return &addressBound{Listener: ln, most: c.OpenConnectionLimit(), trusted: config.Prefixes(c.TrustedProxies), log: log}
}

// Accept returns the next connection of an address that has fewer than it may have.
func (l *addressBound) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at := addressOf(c.RemoteAddr())
		for _, proxies := range l.trusted {
			if proxies.Contains(at) {
				return c, nil
			}
		}
		if l.open.Enter(at, l.most) {
			return &countedConn{Conn: c, leave: sync.OnceFunc(func() { l.open.Leave(at) })}, nil
		}
		l.refuse(c, at)
	}
}

// toldEvery is the time between two lines of the log about refused connections.
const toldEvery = time.Minute

// refuse closes a connection that is one too many. There is no answer: over TLS it would cost a handshake.
func (l *addressBound) refuse(c net.Conn, at netip.Addr) {
	// The client's end sees the same, whatever closing says here.
	_ = c.Close()
	n, now, told := l.refused.Add(1), time.Now().UnixNano(), l.toldAt.Load()
	if now-told < int64(toldEvery) || !l.toldAt.CompareAndSwap(told, now) {
		return
	}
	l.log.Warn("connections are refused: their address has as many open as connections_per_address allows", "address", at, "refused", n)
}

var descRefused = prometheus.NewDesc("dibs_http_connections_refused_total",
	"Connections closed unanswered because their address had too many open.", nil, nil)

// Describe sends the description of the number.
func (l *addressBound) Describe(out chan<- *prometheus.Desc) { out <- descRefused }

// Collect sends the number of connections that were refused.
func (l *addressBound) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(l.refused.Load()))
}

// addressOf returns the address of a connection's other end; not valid for what is no address of IP.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// countedConn is a connection that its address has one less of once it is closed.
type countedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection. It may be called again.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// CloseWrite ends what is sent, where the connection can: net/http does so before it closes one with unread bytes, so
// that the client receives the answer.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ReadFrom sends what a reader has, and leaves it to the connection how: the system can copy files by itself.
func (c *countedConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
