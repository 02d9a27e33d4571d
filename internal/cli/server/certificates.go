package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// certificates is what HTTPS is served with, as the files have it.
type certificates struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
}

func (cs *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(cs.cert, cs.key)
	if err != nil {
		return fmt.Errorf("tls_cert and tls_key: %w", err)
	}
	cs.current.Store(&pair)
	return nil
}

// openCertificates loads the files of the settings; nil for plain HTTP.
func openCertificates(c *config.Config) (*certificates, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cs := &certificates{cert: c.TLSCert, key: c.TLSKey}
	return cs, cs.load()
}

func (cs *certificates) settings() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cs.current.Load(), nil },
	}
}

// inUse tells what to do when another process has the store.
func inUse(c *config.Config) string {
	other := "--data"
	if sqlledger.InServer(c.Ledger) {
		other = "--ledger"
	}
	return "one process at a time may use it; stop that one, or name another " + other
}
