package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/web"
)

func (cs *certificates) loadClients() error {
	if cs.clientCA == "" {
		return nil
	}
	pool, err := config.ReadAuthorities(cs.clientCA)
	if err != nil {
		return fmt.Errorf("admin_client_ca %w", err)
	}
	revoked, err := config.ReadRevoked(cs.clientCA)
	if err != nil {
		return fmt.Errorf("admin_client_ca %w", err)
	}
	cs.clients.Store(pool)
	cs.revoked.Store(&revoked)
	return nil
}

// adminConfig is the config of the administrators' address, which takes only client
// certificates of the authorities, if the settings name some.
// Each handshake reads them afresh. A resumed session would skip the check of a certificate
// whose authority is gone by now, so there are none.
func (cs *certificates) adminConfig() *tls.Config {
	if cs.clientCA == "" {
		return cs.config()
	}
	outer := cs.config()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := cs.config()
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, cs.clients.Load(), true
		c.VerifyConnection = func(s tls.ConnectionState) error {
			err := cs.checkRevoked(s.VerifiedChains, time.Now())
			if conn, ok := hello.Conn.(*clientConn); ok && err == nil {
				cs.open.hold(conn, shown{s.PeerCertificates, s.VerifiedChains})
			}
			return err
		}
		return c, nil
	}
	return outer
}

// errRevokedCertificate ends the handshake of a client whose certificate was revoked.
var errRevokedCertificate = errors.New("the client certificate was revoked by its authority")

// errEndedList ends the handshake of a client of whose authority there are only old lists.
var errEndedList = errors.New("the list of revoked certificates of the client's authority has ended: put its next one into the file of admin_client_ca")

// checkRevoked refuses a client certificate that stands in a list of its authority, or that
// an authority below it does.
func (cs *certificates) checkRevoked(chains [][]*x509.Certificate, now time.Time) error {
	for _, chain := range chains {
		for _, c := range chain {
			if err := revokedBy(*cs.revoked.Load(), c, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// revokedBy holds a certificate against the lists of its authority. One that has ended does
// not say what was revoked since: when all have, no certificate of the authority is good.
func revokedBy(lists []*x509.RevocationList, c *x509.Certificate, now time.Time) error {
	var ended *x509.RevocationList
	current := false
	for _, l := range lists {
		if !bytes.Equal(c.RawIssuer, l.RawIssuer) {
			continue
		}
		if slices.ContainsFunc(l.RevokedCertificateEntries, func(r x509.RevocationListEntry) bool { return r.SerialNumber.Cmp(c.SerialNumber) == 0 }) {
			return errRevokedCertificate
		}
		if l.NextUpdate.IsZero() || now.Before(l.NextUpdate) {
			current = true
		} else {
			ended = l
		}
	}
	if ended == nil || current {
		return nil
	}
	return fmt.Errorf("%w (%s, ended %s)", errEndedList, ended.Issuer, ended.NextUpdate.UTC().Format(time.RFC3339))
}

// errUntrusted ends the connection of a client whose certificate has ended, or whose authority was removed.
var errUntrusted = errors.New("the client certificate is not one that the authorities vouch for now")

// shown is what a client showed at its handshake: its certificate with those that came with it, and the chains from it to
// the authorities of that time.
type shown struct {
	peer   []*x509.Certificate
	chains [][]*x509.Certificate
}

// check returns nil while the certificate that a client has shown would be taken by a handshake now.
func (cs *certificates) check(s shown, now time.Time) error {
	authorities := cs.clients.Load()
	chains := slices.DeleteFunc(slices.Clone(s.chains), func(chain []*x509.Certificate) bool { return !stands(chain, authorities, now) })
	if len(chains) == 0 && len(s.peer) > 0 {
		// An authority that came since may vouch for it, as one does that was renewed.
		between := x509.NewCertPool()
		for _, c := range s.peer[1:] {
			between.AddCert(c)
		}
		// No chain is left on an error.
		chains, _ = s.peer[0].Verify(x509.VerifyOptions{
			Roots: authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
	}
	if len(chains) == 0 {
		return errUntrusted
	}
	return cs.checkRevoked(chains, now)
}

// stands reports whether no certificate of a chain has ended and its authority is still one. The signatures were checked
// at the handshake, so that this costs a call little.
func stands(chain []*x509.Certificate, authorities *x509.CertPool, now time.Time) bool {
	for _, c := range chain {
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			return false
		}
	}
	if len(chain) == 0 {
		return false
	}
	_, err := chain[len(chain)-1].Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

var errCertificate = dibs.Fail(dibs.Forbidden, dibs.Text{
	EN: "the client certificate is not good any more: it has ended or was revoked, or its authority was removed or has only ended lists of revoked ones",
	ZH: "客户端证书已失效：证书已过期或被吊销，或其颁发机构已被移除，或该机构的吊销列表已过期",
})

// recheck refuses requests of a connection whose client certificate is not good any more, and closes it: handshakes look
// at the file and the clock, and a connection that is kept open outlives what its handshake saw. endBad closes it soon
// after, with the streams on it; until then no call comes through.
func (cs *certificates) recheck(next http.Handler, respond *web.Responder) http.Handler {
	if cs.clientCA == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := cs.check(shown{r.TLS.PeerCertificates, r.TLS.VerifiedChains}, time.Now()); err != nil {
			w.Header().Set("Connection", "close")
			respond.Fail(w, r, respond.Begin(w, r), errCertificate)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// clientConns are the open connections to the administrators' address, also those that WebSockets have taken over, of which
// net/http knows no more. The zero value is ready.
//
// mu guards open, which has a connection from its accepting until it is closed; what it has shown is empty before the end
// of its handshake.
type clientConns struct {
	mu   sync.Mutex
	open map[*clientConn]shown
}

// clientConn is a connection that is in the open ones of its clientConns until it is closed.
type clientConn struct {
	net.Conn
	in *clientConns
}

// Close closes the connection. It may be called again.
func (c *clientConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// clientListener puts the connections that it accepts into the open ones.
type clientListener struct {
	net.Listener
	in *clientConns
}

// Accept returns the next connection.
func (l clientListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &clientConn{accepted, l.in}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if l.in.open == nil {
		l.in.open = map[*clientConn]shown{}
	}
	l.in.open[c] = shown{}
	return c, nil
}

// listener is a listener whose connections end with their client certificates, if the settings ask for some.
func (cs *certificates) listener(ln net.Listener) net.Listener {
	if cs.clientCA == "" {
		return ln
	}
	return clientListener{ln, &cs.open}
}

// hold notes what a client has shown, unless its connection was closed meanwhile.
func (o *clientConns) hold(c *clientConn, s shown) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, is := o.open[c]; is {
		o.open[c] = s
	}
}

// all returns what the clients have shown whose handshakes are over.
func (o *clientConns) all() map[*clientConn]shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := maps.Clone(o.open)
	maps.DeleteFunc(all, func(_ *clientConn, s shown) bool { return len(s.peer) == 0 })
	return all
}

// endBad closes the connections whose client certificates are not good at a time, with the streams on them.
func (cs *certificates) endBad(log *slog.Logger, now time.Time) {
	for c, s := range cs.open.all() {
		if err := cs.check(s, now); err != nil {
			log.Warn("a connection of an administrator was ended", "address", c.RemoteAddr(), "err", err)
			// It is gone for the client, whatever closing says here.
			_ = c.Close()
		}
	}
}

// watchOpen looks at the open connections every pollEvery, until ctx ends.
func (cs *certificates) watchOpen(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			cs.endBad(log, now)
		}
	}
}
