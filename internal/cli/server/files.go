package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// certificates holds the certificate that HTTPS is served with. Handshakes read
// current while a reload replaces it.
type certificates struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
}

// openCertificates loads the files of the settings; nil for plain HTTP.
func openCertificates(c *config.Config) (*certificates, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cs := &certificates{cert: c.TLSCert, key: c.TLSKey}
	return cs, cs.load()
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
	if file := s.c.ListsFile; file != "" {
		sets = append(sets, &fileSet{name: "lists", paths: []string{file}, load: func() error {
			lists, err := s.c.Lists()
			if err != nil {
				return fmt.Errorf("%s %w", file, err)
			}
			s.node.Limits.SetLists(lists)
			return nil
		}})
	}
	return sets
}
