package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/internal/web"
)

// certificates holds the certificate that HTTPS is served with, and the authorities of
// administrators' client certificates, if they need some. Handshakes read current and
// clients while a reload replaces them.
type certificates struct {
	cert, key, clientCA string
	current             atomic.Pointer[tls.Certificate]
	clients             atomic.Pointer[x509.CertPool]
	// revoked are the lists of client certificates that their authorities take back.
	revoked atomic.Pointer[[]*x509.RevocationList]
}

// openCertificates loads the files of the settings; nil for plain HTTP.
func openCertificates(c *config.Config) (*certificates, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cs := &certificates{cert: c.TLSCert, key: c.TLSKey, clientCA: c.AdminClientCA}
	return cs, errors.Join(cs.load(), cs.loadClients())
}

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

func (cs *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(cs.cert, cs.key)
	if err != nil {
		return fmt.Errorf("tls_cert and tls_key: %w", err)
	}
	cs.current.Store(&pair)
	return nil
}

func (cs *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cs.current.Load(), nil },
	}
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
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := cs.config()
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, cs.clients.Load(), true
		c.VerifyConnection = func(s tls.ConnectionState) error { return cs.checkRevoked(s.VerifiedChains, time.Now()) }
		return c, nil
	}
	return outer
}

var errCertificate = dibs.Fail(dibs.Forbidden, dibs.Text{
	EN: "the client certificate was revoked, or its authority's list of revoked ones has ended", ZH: "客户端证书已被吊销，或其颁发机构的吊销列表已过期",
})

// recheck refuses requests of a connection whose client certificate is not good any more, and closes it: handshakes look
// at the lists, and a connection that is kept open outlives what its handshake saw.
func (cs *certificates) recheck(next http.Handler, respond *web.Responder) http.Handler {
	if cs.clientCA == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := cs.checkRevoked(r.TLS.VerifiedChains, time.Now()); err != nil {
			w.Header().Set("Connection", "close")
			respond.Fail(w, r, respond.Begin(w, r), errCertificate)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// watched returns the files that take effect when they change while the server runs.
func (s *Server) watched() []*fileSet {
	var sets []*fileSet
	if s.certs != nil {
		sets = append(sets, &fileSet{name: "certificate", paths: []string{s.certs.cert, s.certs.key}, load: s.certs.load})
	}
	if s.certs != nil && s.certs.clientCA != "" {
		sets = append(sets, &fileSet{name: "authorities of client certificates", paths: []string{s.certs.clientCA}, load: s.certs.loadClients})
	}
	sets = append(sets, s.watchedSecrets()...)
	if file := s.c.ListsFile; file != "" {
		sets = append(sets, &fileSet{name: "lists", paths: []string{file}, load: func() error {
			lists, err := s.c.Lists()
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			s.node.Limits.SetLists(lists)
			if s.strangers != nil {
				s.strangers.SetLists(limit.Lists{Allowed: lists.Allowed})
			}
			return nil
		}})
	}
	return sets
}

// addKeyWithin bounds how long the ledger may take to store a key; the next look at the file tries again.
const addKeyWithin = 10 * time.Second

// addAdminKey has the ledger keep an admin key beside those that it has: the one before is valid until it is revoked, so
// that programs change over one after the other. A key that was revoked is refused, as at the start.
func (s *Server) addAdminKey(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), addKeyWithin)
	defer cancel()
	_, err := s.node.Service.Access.EnsureKey(ctx, "serve", key)
	return err
}

// watchedSecrets returns the files of secrets that take effect when they change.
func (s *Server) watchedSecrets() (sets []*fileSet) {
	if file := s.c.JWTSecretFile; s.tokens != nil && file != "" {
		sets = append(sets, &fileSet{name: "token secrets", paths: []string{file}, load: func() error {
			secrets, err := s.c.JWTSecrets()
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			s.tokens.SetSecrets(secrets)
			return nil
		}})
	}
	if file := s.c.Values.FileOf("human_secret"); file != "" {
		sets = append(sets, &fileSet{name: "secrets of the human check", paths: []string{file}, load: func() error {
			secrets, err := s.c.ReadHumanSecrets(file)
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			return s.node.Tickets.SetHumanSecrets(secrets)
		}})
	}
	if file := s.c.Values.FileOf("admin_key"); file != "" {
		sets = append(sets, &fileSet{name: "admin key", paths: []string{file}, load: func() error {
			key, err := s.c.ReadAdminKey(file)
			if err == nil {
				err = s.addAdminKey(key)
			}
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			return nil
		}})
	}
	if file := s.c.Values.FileOf("oidc_client_secret"); s.people != nil && file != "" {
		sets = append(sets, &fileSet{name: "secret at the identity provider", paths: []string{file}, load: func() error {
			secret, err := settings.ReadValue(file)
			if err == nil && secret == "" {
				err = errors.New("has no secret in it")
			}
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			s.people.SetClientSecret(secret)
			return nil
		}})
	}
	for _, file := range s.c.AddressFiles() {
		sets = append(sets, &fileSet{name: "addresses of " + file.Key, paths: []string{file.Path}, load: func() error {
			if err := s.c.ReadLogins(file); err != nil {
				return fmt.Errorf("%s %w", file.Path, err)
			}
			return nil
		}})
	}
	if file := s.c.LedgerKeyFile; file != "" {
		sets = append(sets, &fileSet{name: "keys of the ledger", paths: []string{file}, load: func() error {
			keys, err := s.c.LedgerKeys()
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			return s.node.Keys.Set(keys)
		}})
	}
	return sets
}
