// Package keyring encrypts short texts that a database keeps, under keys from outside of it:
// a copy of the database alone does not show them.
package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// prefix begins each encrypted text: prefix, the id of its key, a colon, and nonce and
// ciphertext in base 64. No plain text that is stored begins so.
const prefix = "enc:"

// KeySize is the length of a key in bytes; idSize that of its id in hexadecimal digits.
const (
	KeySize = 32
	idSize  = 8
)

// ErrNoKey: the text is encrypted under a key that the ring does not have.
var ErrNoKey = errors.New("keyring: the text is encrypted under a key that is not there")

// Ring holds keys: the first one encrypts, and each decrypts. The zero value has none: texts
// stay plain. It is safe for concurrent use: keys are replaced as a whole.
type Ring struct{ keys atomic.Pointer[[]key] }

// key is a cipher with its id, the beginning of the SHA-256 of the key: the same key has the
// same id on all nodes, and nobody has to name keys.
type key struct {
	id   string
	seal cipher.AEAD
	// nonces is the key of the hashes that are nonces of Equals.
	nonces []byte
}

// Set replaces the keys, each of KeySize bytes.
func (r *Ring) Set(secrets [][]byte) error {
	keys := make([]key, 0, len(secrets))
	for _, secret := range secrets {
		if len(secret) != KeySize {
			return fmt.Errorf("keyring: a key has %d bytes, not %d", len(secret), KeySize)
		}
		block, err := aes.NewCipher(secret)
		if err != nil {
			return err
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(secret)
		nonces := hmac.New(sha256.New, secret)
		nonces.Write([]byte("nonces of equal texts"))
		keys = append(keys, key{hex.EncodeToString(sum[:])[:idSize], gcm, nonces.Sum(nil)})
	}
	r.keys.Store(&keys)
	return nil
}

// list returns the keys; none for a nil ring.
func (r *Ring) list() []key {
	if r == nil {
		return nil
	}
	if keys := r.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Seal returns a text encrypted by AES-256-GCM, bound to the place where it is stored: in
// another place it cannot be opened. Without keys the text stays as it is, as does one that is
// encrypted already, or empty.
func (r *Ring) Seal(text, place string) string {
	keys := r.list()
	if len(keys) == 0 || text == "" || Sealed(text) {
		return text
	}
	first := keys[0]
	nonce := make([]byte, first.seal.NonceSize(), first.seal.NonceSize()+len(text)+first.seal.Overhead())
	// crypto/rand.Read never fails: it stops the program instead.
	_, _ = rand.Read(nonce)
	return prefix + first.id + ":" + base64.RawStdEncoding.EncodeToString(first.seal.Seal(nonce, nonce, []byte(text), []byte(place)))
}

// Open returns the text that Seal encrypted; a plain text as it is. ErrNoKey; another error
// for a text that was changed, or moved from its place.
func (r *Ring) Open(stored, place string) (string, error) {
	if !Sealed(stored) {
		return stored, nil
	}
	return openBy(r.list(), strings.TrimPrefix(stored, prefix), place)
}

// openBy opens a text by the key that is named before it.
func openBy(keys []key, stored, place string) (string, error) {
	id, body, _ := strings.Cut(stored, ":")
	for _, k := range keys {
		if k.id == id {
			return k.open(body, place)
		}
	}
	return "", fmt.Errorf("%w (its id is %s)", ErrNoKey, id)
}

// Sealed reports whether a text is an encrypted one.
func Sealed(stored string) bool { return strings.HasPrefix(stored, prefix) }

// Current reports whether a stored text is as Seal would store it now: under the first key, or
// plain where there is none.
func (r *Ring) Current(stored string) bool {
	keys := r.list()
	if len(keys) == 0 || stored == "" {
		return !Sealed(stored)
	}
	return strings.HasPrefix(stored, prefix+keys[0].id+":")
}

// ReadKeys reads the lines of a file of keys, each 64 hexadecimal digits; empty lines and those
// that begin with # are passed over.
func ReadKeys(file []byte) (keys [][]byte, err error) {
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		secret, err := hex.DecodeString(string(line))
		if err != nil || len(secret) != KeySize {
			// The line itself may be a key with a mistake in it.
			return nil, fmt.Errorf("line %d must be %d hexadecimal digits: openssl rand -hex %d makes a key", i+1, 2*KeySize, KeySize)
		}
		keys = append(keys, secret)
	}
	if len(keys) == 0 {
		return nil, errors.New("has no key in it")
	}
	return keys, nil
}
