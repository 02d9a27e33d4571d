package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// writePair writes a certificate with a serial number, and its key.
func writePair(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificates: handshakes get the certificate that was loaded last, and one that
// cannot be loaded changes nothing.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	if cs, err := openCertificates(&config.Config{}); cs != nil || err != nil {
		t.Errorf("plain HTTP: %v, %v", cs, err)
	}
	writePair(t, dir, 1)
	cs, err := openCertificates(&config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")})
	if err != nil {
		t.Fatal(err)
	}
	serves := func(serial int64) {
		t.Helper()
		pair, err := cs.config().GetCertificate(nil)
		if err != nil || pair.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%v, %v, want %d", pair.Leaf.SerialNumber, err, serial)
		}
	}
	serves(1)
	writePair(t, dir, 2)
	serves(1)
	if err := cs.load(); err != nil {
		t.Error(err)
	}
	serves(2)
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cs.load(); err == nil || !strings.Contains(err.Error(), "tls_cert and tls_key") {
		t.Errorf("%v", err)
	}
	serves(2)
}

// TestWatched: a server watches the files that its settings name, and no others.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	c := &config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), ListsFile: filepath.Join(dir, "lists"), JWTSecretFile: "none"}
	cs, err := openCertificates(c)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range (&Server{c: c, certs: cs}).watched() {
		names = append(names, f.name)
	}
	// Without a verifier no token secrets are in use.
	if strings.Join(names, ",") != "certificate,lists" {
		t.Errorf("watched are %v", names)
	}
	if sets := (&Server{c: &config.Config{}}).watched(); len(sets) != 0 {
		t.Errorf("%d sets of files", len(sets))
	}
}
