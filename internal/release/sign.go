package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// signatureName is the name of the signature of the checksums: 64 bytes, as openssl pkeyutl
// checks them.
const signatureName = sumsName + ".sig"

// sign signs the checksums with the Ed25519 key of a PEM file, and so everything that they
// name. Such a signature has no randomness: who makes the release again with the same key
// gets the same bytes.
func (r *release) sign(file string) error {
	key, err := signingKey(file)
	if err != nil {
		return fmt.Errorf("the key %s: %w", file, err)
	}
	sums, err := os.ReadFile(r.path(sumsName))
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(signatureName), ed25519.Sign(key, sums), 0o644)
}

// signingKey reads a private key, as openssl genpkey -algorithm ed25519 writes it.
func signingKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is no PEM file")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is not of Ed25519: openssl genpkey -algorithm ed25519 makes one")
	}
	return key, nil
}
