package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/gate/ticket"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/webhooks"
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

// TestOldTLS: a client that speaks nothing newer than TLS 1.1 is turned away.
func TestOldTLS(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	cs, err := openCertificates(&config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")})
	if err != nil {
		t.Fatal(err)
	}
	for version, good := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		there, here := net.Pipe()
		answer := make(chan error, 1)
		go func() { answer <- tls.Server(there, cs.config()).HandshakeContext(t.Context()) }()
		// Who serves is not what this asks.
		client := tls.Client(here, &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true})
		err := client.HandshakeContext(t.Context())
		if serverErr := <-answer; (err == nil) != good || (serverErr == nil) != good {
			t.Errorf("%s: %v, %v", tls.VersionName(version), err, serverErr)
		}
		_, _ = here.Close(), there.Close()
	}
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

// TestReloadKeepsTheRules changes the file of token secrets of a server that runs: what a
// start would refuse, a reload refuses too, and the earlier secrets stay.
func TestReloadKeepsTheRules(t *testing.T) {
	const human = "the secret of the human check, 32 bytes+"
	path := filepath.Join(t.TempDir(), "secrets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("the first secret of users' tokens, 32 bytes+")
	c := &config.Config{JWTSecretFile: path, HumanSecret: human}
	verifier, err := openTokens(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer verifier.Close()
	sets := (&Server{c: c, tokens: verifier}).watched()
	if len(sets) != 1 {
		t.Fatalf("%d sets of files are watched", len(sets))
	}
	epoch := verifier.Epoch()
	for what, text := range map[string]string{"the voucher's": human, "a weak one": strings.Repeat("a", 40)} {
		write(text)
		if err := sets[0].load(); err == nil || verifier.Epoch() != epoch {
			t.Errorf("%s: the reload took it (%v)", what, err)
		}
	}
	write("the second secret of users' tokens, 32 bytes+")
	if err := sets[0].load(); err != nil || verifier.Epoch() == epoch {
		t.Errorf("a good secret: %v", err)
	}
}

// TestReloadKeepsNeededKeys changes the file of the ledger's keys of a server that runs: one without a key that a secret
// is under is refused, as at the start, and the secret can still be read.
func TestReloadKeepsNeededKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(keys ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, next := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	write(first)
	s, err := Start(t.Context(), &config.Config{
		Listen: "127.0.0.1:0", Data: t.TempDir(), Engine: []string{"memory"}, LedgerTimeout: time.Second, Durability: "durable", LedgerKeyFile: path,
		DurabilityLost: "refuse", Drain: time.Second, Migrate: true, JWTSecret: "the secret of users' tokens, 32 bytes or more", ProxyHeader: "Forwarded", LimitEntries: 1024,
	}, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	e, err := s.node.Webhooks.Create(t.Context(), webhooks.EndpointSpec{URL: "https://hooks.example/x"})
	if err != nil {
		t.Fatal(err)
	}
	sets := s.watched()
	if len(sets) != 1 || sets[0].name != "keys of the ledger" {
		t.Fatalf("%d sets of files are watched", len(sets))
	}
	write(next)
	if err := sets[0].load(); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("a file without the key of a secret: %v", err)
	}
	write(next, first)
	if err := sets[0].load(); err != nil {
		t.Errorf("a file with both: %v", err)
	}
	if is, err := s.node.Webhooks.Get(t.Context(), e.ID); err != nil || is.Secret != e.Secret {
		t.Errorf("the secret cannot be read: %v", err)
	}
}

// TestClientAuthorities: the administrators' address asks for certificates where authorities are
// named, and handshakes see the file as it was read last; the users' address never asks.
func TestClientAuthorities(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	ca := filepath.Join(dir, "cert.pem")
	cs, err := openCertificates(&config.Config{TLSCert: ca, TLSKey: filepath.Join(dir, "key.pem"), AdminClientCA: ca})
	if err != nil {
		t.Fatal(err)
	}
	names := (&Server{c: &config.Config{}, certs: cs}).watched()
	if len(names) != 2 || names[1].name != "authorities of client certificates" {
		t.Errorf("%d sets of files are watched", len(names))
	}
	handshake := func() *tls.Config {
		t.Helper()
		c, err := cs.adminConfig().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := handshake()
	if first.ClientAuth != tls.RequireAndVerifyClientCert || first.ClientCAs == nil || cs.config().ClientAuth != tls.NoClientCert {
		t.Errorf("%v and %v", first.ClientAuth, cs.config().ClientAuth)
	}
	writePair(t, dir, 2)
	if err := names[1].load(); err != nil || handshake().ClientCAs.Equal(first.ClientCAs) {
		t.Errorf("after a reload: %v", err)
	}
	if err := os.WriteFile(ca, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := names[1].load(); err == nil || handshake().ClientCAs == nil {
		t.Errorf("without a certificate: %v", err)
	}
}

// TestSecretsOfVariableFiles: files that variables name are read again while the server runs,
// by the rules of the start.
func TestSecretsOfVariableFiles(t *testing.T) {
	const users = "the first secret of users' tokens, 32 bytes+"
	dir := t.TempDir()
	human, client := filepath.Join(dir, "human"), filepath.Join(dir, "client")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(human, "the first secret of the human check, 32 bytes+")
	write(client, "one")
	c := &config.Config{}
	values, faults, err := settings.Load(c, settings.Sources{Environ: []string{
		"DIBS_HUMAN_SECRET_FILE=" + human, "DIBS_OIDC_CLIENT_SECRET_FILE=" + client, "DIBS_JWT_SECRET=" + users,
		"DIBS_OIDC_ISSUER=https://login.example", "DIBS_OIDC_CLIENT_ID=dibs", "DIBS_OIDC_ADDRESS=https://admin.example", "DIBS_OIDC_ROLES=ops=admin",
	}})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	c.Values = values
	s := &Server{c: c, node: &node.Node{}}
	if s.people, err = c.OIDC(); err != nil {
		t.Fatal(err)
	}
	if s.node.Tickets, err = ticket.New(ticket.Config{Key: make([]byte, 32), HumanSecrets: c.HumanSecrets()}); err != nil {
		t.Fatal(err)
	}
	var names []string
	sets := s.watched()
	for _, f := range sets {
		names = append(names, f.name)
	}
	if strings.Join(names, ",") != "secrets of the human check,secret at the identity provider" {
		t.Fatalf("watched are %v", names)
	}
	for what, text := range map[string]string{"a short one": "short", "a weak one": strings.Repeat("a", 40), "that of users' tokens": users, "none": ""} {
		write(human, text)
		if err := sets[0].load(); err == nil || len(c.HumanSecrets()) != 1 {
			t.Errorf("%s: the reload took it (%v)", what, err)
		}
	}
	write(human, "the second secret of the human check, 32 bytes+\nthe first secret of the human check, 32 bytes+")
	if err := sets[0].load(); err != nil || len(c.HumanSecrets()) != 2 {
		t.Errorf("both secrets: %v, %d", err, len(c.HumanSecrets()))
	}
	write(client, "two")
	if err := sets[1].load(); err != nil {
		t.Error(err)
	}
	write(client, "")
	if err := sets[1].load(); err == nil {
		t.Error("an empty secret is taken")
	}
}

// TestRevokedClientCertificates: a client certificate that its authority has taken back opens
// no connection, from the moment on at which its list is read; others do.
func TestRevokedClientCertificates(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	ca, caKey := authority(t, "an authority")
	file := filepath.Join(dir, "authorities.pem")
	write := func(blocks ...[]byte) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Join(append([][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})}, blocks...), nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	cs, err := openCertificates(&config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), AdminClientCA: file})
	if err != nil {
		t.Fatal(err)
	}
	good, lost := clientPair(t, ca, caKey, 7), clientPair(t, ca, caKey, 8)
	enters := func(c tls.Certificate) error {
		t.Helper()
		here, there := net.Pipe()
		defer here.Close()
		go func() {
			// The server says how the handshake ended.
			_ = tls.Client(there, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c}}).HandshakeContext(t.Context()) //nolint:gosec // the server is the one under test
			_ = there.Close()
		}()
		return tls.Server(here, cs.adminConfig()).HandshakeContext(t.Context())
	}
	for name, c := range map[string]tls.Certificate{"one": good, "another": lost} {
		if err := enters(c); err != nil {
			t.Errorf("%s without a list: %v", name, err)
		}
	}
	stranger, strangerKey := authority(t, "an authority")
	for what, bad := range map[string][]byte{
		"no authority in it has": revocations(t, stranger, strangerKey, time.Now().Add(time.Hour)),
		"cannot be read":         pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: []byte("none")}),
	} {
		write(bad)
		if err := cs.loadClients(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("a list that %s: %v", what, err)
		}
	}
	if err := enters(lost); err != nil {
		t.Errorf("after lists that cannot be used: %v", err)
	}
	// A list that has ended keeps no node from starting, and nobody of its authority enters.
	ended, current := revocations(t, ca, caKey, time.Now().Add(-time.Hour)), revocations(t, ca, caKey, time.Now().Add(time.Hour))
	write(ended)
	if err := cs.loadClients(); err != nil {
		t.Fatal(err)
	}
	if err := enters(good); !errors.Is(err, errEndedList) || !strings.Contains(err.Error(), "CN=an authority, ended 20") {
		t.Errorf("after its list has ended: %v", err)
	}
	write(ended, current)
	if err := cs.loadClients(); err != nil {
		t.Fatal(err)
	}
	if err := enters(lost); !errors.Is(err, errRevokedCertificate) {
		t.Errorf("the revoked one: %v", err)
	}
	if err := enters(good); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// revocations is an authority's list of revoked certificates, with number 8 on it.
func revocations(t *testing.T, by *x509.Certificate, key *ecdsa.PrivateKey, until time.Time) []byte {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: until,
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: big.NewInt(8), RevocationTime: time.Now()}},
	}, by, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// authority makes an authority of a name.
func authority(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return signedBy(t, template, template, key.Public(), key), key
}

// clientPair makes a client certificate of an authority.
func clientPair(t *testing.T, ca *x509.Certificate, caKey *ecdsa.PrivateKey, serial int64) tls.Certificate {
	t.Helper()
	return clientPairUntil(t, ca, caKey, serial, time.Now().Add(time.Hour))
}

// clientPairUntil is clientPair with an end.
func clientPairUntil(t *testing.T, ca *x509.Certificate, caKey *ecdsa.PrivateKey, serial int64, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := signedBy(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), caKey)
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
}

// signedBy makes a certificate.
func signedBy(t *testing.T, template, parent *x509.Certificate, public any, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
