package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/settings"
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
	// open are the connections of clients that have shown a certificate.
	open clientConns
}

// openCertificates loads the files of the settings; nil for plain HTTP.
func openCertificates(c *config.Config) (*certificates, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cs := &certificates{cert: c.TLSCert, key: c.TLSKey, clientCA: c.AdminClientCA}
	return cs, errors.Join(cs.load(), cs.loadClients())
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

// watched returns the files that take effect when they change while the server runs.
func (s *Server) watched() []*fileSet {
	var sets []*fileSet
	if s.certs != nil {
		sets = append(sets, &fileSet{name: "certificate", paths: []string{s.certs.cert, s.certs.key}, load: s.certs.load})
	}
	if s.certs != nil && s.certs.clientCA != "" {
		sets = append(sets, &fileSet{name: "authorities of client certificates", paths: []string{s.certs.clientCA}, load: s.certs.loadClients})
	}
	return slices.Concat(sets, s.watchedSecrets(), onFile("lists", s.c.ListsFile, func(string) error {
		lists, err := s.c.Lists()
		if err != nil {
			return err
		}
		s.node.Limits.SetLists(lists)
		if s.strangers != nil {
			s.strangers.SetLists(limit.Lists{Allowed: lists.Allowed})
		}
		return nil
	}))
}

// onFile is the set of one file, none without a file. A fault of its content is told with its path.
func onFile(name, file string, load func(file string) error) []*fileSet {
	if file == "" {
		return nil
	}
	return []*fileSet{{name: name, paths: []string{file}, load: func() error {
		if err := load(file); err != nil {
			return fmt.Errorf("%s %w", file, err)
		}
		return nil
	}}}
}

// addKeyWithin bounds how long the ledger may take to store a key, or to say which keys it needs; the next look at the
// file tries again.
const addKeyWithin = 10 * time.Second

// addAdminKey has the ledger keep an admin key beside those that it has: the one before is valid until it is revoked, so
// that programs change over one after the other. A key that was revoked is refused, as at the start.
func (s *Server) addAdminKey(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), addKeyWithin)
	defer cancel()
	_, err := s.node.Service.Access.EnsureKey(ctx, "serve", key)
	return err
}

// useLedgerKeys has the node use other keys of the ledger. Like the start it refuses keys without one that a secret or a
// code needs: nothing could be read of these, and campaigns with such codes not be loaded.
func (s *Server) useLedgerKeys(keys [][]byte) error {
	next := &keyring.Ring{}
	if err := next.Set(keys); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), addKeyWithin)
	defer cancel()
	if err := s.node.Ledger.CheckRing(ctx, next); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	return s.node.Keys.Set(keys)
}

// watchedSecrets returns the files of secrets that take effect when they change.
func (s *Server) watchedSecrets() (sets []*fileSet) {
	if s.tokens != nil {
		sets = onFile("token secrets", s.c.JWTSecretFile, func(string) error {
			secrets, err := s.c.JWTSecrets()
			if err == nil {
				s.tokens.SetSecrets(secrets)
			}
			return err
		})
	}
	sets = slices.Concat(sets, onFile("secrets of the human check", s.c.Values.FileOf("human_secret"), func(file string) error {
		secrets, err := s.c.ReadHumanSecrets(file)
		if err != nil {
			return err
		}
		return s.node.Tickets.SetHumanSecrets(secrets)
	}), onFile("admin key", s.c.Values.FileOf("admin_key"), func(file string) error {
		key, err := s.c.ReadAdminKey(file)
		if err != nil {
			return err
		}
		return s.addAdminKey(key)
	}))
	if s.people != nil {
		sets = append(sets, onFile("secret at the identity provider", s.c.Values.FileOf("oidc_client_secret"), func(file string) error {
			secret, err := settings.ReadValue(file)
			if err == nil && secret == "" {
				err = errors.New("has no secret in it")
			}
			if err == nil {
				s.people.SetClientSecret(secret)
			}
			return err
		})...)
	}
	for _, at := range s.c.AddressFiles() {
		sets = append(sets, onFile("addresses of "+at.Key, at.Path, func(string) error { return s.c.ReadLogins(at) })...)
	}
	return append(sets, onFile("keys of the ledger", s.c.LedgerKeyFile, func(string) error {
		keys, err := s.c.LedgerKeys()
		if err != nil {
			return err
		}
		return s.useLedgerKeys(keys)
	})...)
}
