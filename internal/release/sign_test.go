package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// pemFile writes a key into a file.
func pemFile(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	must(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// TestSign: the signature of the checksums is one of the key, the same each time, and that of
// no other text; a key of another kind signs nothing.
func TestSign(t *testing.T) {
	r := newRelease(t)
	sums := []byte("0123  dibs_1.2.3_linux_amd64.tar.gz\n")
	must(t, os.WriteFile(r.path(sumsName), sums, 0o644))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	key := pemFile(t, "PRIVATE KEY", der, err)
	must(t, r.sign(key))
	signature, err := os.ReadFile(r.path(signatureName))
	must(t, err)
	if !ed25519.Verify(public, sums, signature) || ed25519.Verify(public, append(sums, ' '), signature) {
		t.Errorf("the signature %x is not that of the checksums", signature)
	}
	must(t, r.sign(key))
	if again, err := os.ReadFile(r.path(signatureName)); err != nil || !bytes.Equal(signature, again) {
		t.Errorf("signed again it is %x, %v", again, err)
	}
	// The command that docs/OPERATIONS.md names for those who install.
	spki, err := x509.MarshalPKIXPublicKey(public)
	pub := pemFile(t, "PUBLIC KEY", spki, err)
	said(t, "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", pub, "-rawin", "-in", r.path(sumsName), "-sigfile", r.path(signatureName))

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err = x509.MarshalPKCS8PrivateKey(other)
	for what, file := range map[string]string{
		"a key of another kind": pemFile(t, "PRIVATE KEY", der, err), "no key": pemFile(t, "PRIVATE KEY", []byte("none"), nil), "no file": key + "x",
	} {
		if err := r.sign(file); err == nil {
			t.Errorf("%s has signed", what)
		}
	}
	// The next release takes the place of this one.
	must(t, os.Remove(r.path(sumsName)))
	must(t, r.empty())
	if left, err := os.ReadDir(r.out); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
