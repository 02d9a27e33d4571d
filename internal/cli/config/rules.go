package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/tracing"
)

// StoreRules are for verbs that open the engine or the ledger. Whether they answer, and whether Redis
// keeps what the durability asks for, shows when they are opened.
func StoreRules(c *Config) []settings.Fault {
	level := c.Durability
	return slices.Concat(ledgerKeyRules(c),
		c.faultIf(c.Data == "", "data", "must name a folder"),
		c.judge("engine", enginesProblem(c.Engine)),
		c.judge("ledger", LedgerProblem(c.Ledger)),
		c.faultIf(!c.OnRedis() && level != "" && level != dibs.LevelDurable && level != dibs.LevelLedgered, "durability", fmt.Sprintf(
			"the memory engine is always durable, at no extra cost, and has no replicas: choose durable or ledgered, not %q", level)))
}

// ServerRules are for verbs that run a server, or judge the settings of one.
func ServerRules(c *Config) []settings.Fault {
	fs := slices.Concat(StoreRules(c),
		c.judge("listen", listenProblem(c.Listen)),
		c.judge("admin_key", adminKeyProblem(c.AdminKey)),
		c.faultIf(!c.OnRedis() && !sqlledger.InServer(c.Ledger) && c.DurabilityLost == dibs.WarnLost,
			"durability_lost", "the memory engine cannot grant what it cannot write: leave it out, or choose refuse"),
		// Only when it was given: see service.
		c.faultIf(c.Given("push_first") && c.PushFirst > c.PushThreshold,
			"push_first", fmt.Sprintf("must be at most push_threshold, %d: up to that many followers are told at once", c.PushThreshold)))
	if c.OTLPEndpoint != "" {
		fs = append(fs, c.judgeErr("otlp_endpoint", tracing.CheckEndpoint(c.OTLPEndpoint))...)
	}
	return slices.Concat(fs, eventsRules(c), tlsRules(c), linkRules(c), accessRules(c))
}

// eventsRules report sinks with a bad address, and sinks that are named twice.
func eventsRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	seen := make(map[string]bool)
	for _, sink := range c.Events {
		name := sinks.Name(sink)
		if err := sinks.Check(sink); err != nil {
			fs = append(fs, c.Fault("events", name+": "+err.Error()))
			// Two sinks of one name would share a place in the feed, and each miss what the other took.
		} else if seen[name] {
			fs = append(fs, c.Fault("events", name+" is named twice"))
		}
		seen[name] = true
	}
	return fs
}

// tlsRules report a certificate or a key that cannot be used. They read both files, so that a server
// does not start with a key that is not of the certificate.
func tlsRules(c *Config) []settings.Fault {
	fs := clientCARules(c)
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
		return fs
	case c.TLSKey == "":
		return append(fs, c.Fault("tls_key", "tls_cert needs it"))
	case c.TLSCert == "":
		return append(fs, c.Fault("tls_cert", "tls_key needs it"))
	}
	if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
		fs = append(fs, c.Fault("tls_cert", "cannot be used with tls_key: "+err.Error()))
	}
	return fs
}

// clientCARules report authorities of client certificates that would never be asked: users have
// no certificates, so administrators need an address of their own, with TLS.
func clientCARules(c *Config) []settings.Fault {
	if c.AdminClientCA == "" {
		return nil
	}
	_, err := ReadAuthorities(c.AdminClientCA)
	if err == nil {
		_, err = ReadRevoked(c.AdminClientCA)
	}
	return slices.Concat(c.faultIf(c.TLSCert == "" || c.AdminListen == "",
		"admin_client_ca", "needs tls_cert and admin_listen: users on the same address would need certificates too"),
		c.judgeErr("admin_client_ca", err))
}

// ReadRevoked reads the lists of revoked certificates that stand in the file of authorities,
// each signed by one of them. Without a list none is revoked.
func ReadRevoked(file string) (lists []*x509.RevocationList, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	var authorities []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("has a certificate that cannot be read: %w", err)
			}
			authorities = append(authorities, c)
		case "X509 CRL":
			l, err := x509.ParseRevocationList(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("has a list of revoked certificates that cannot be read: %w", err)
			}
			lists = append(lists, l)
		}
	}
	for _, l := range lists {
		signed := slices.ContainsFunc(authorities, func(c *x509.Certificate) bool { return l.CheckSignatureFrom(c) == nil })
		if !signed {
			return nil, fmt.Errorf("has a list of revoked certificates of %s, which no authority in it has signed", l.Issuer)
		}
	}
	return lists, nil
}

// ReadAuthorities reads the certificates of a PEM file.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("has no certificate in it")
	}
	return pool, nil
}
