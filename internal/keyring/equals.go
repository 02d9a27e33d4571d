package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// equalsPrefix begins each text that Equals encrypted: it, the id of the key, a colon, and nonce and ciphertext in base
// 64. It is a control character, which no plain text that is stored has.
const equalsPrefix = "\x01"

// Equals encrypts texts of which a database has to find equal ones: the same text of the same place is stored alike. A
// copy of the database shows which texts of a place are alike, and nothing else of them. A nil one, and one that is
// not on, stores plain texts; each reads what any stored, as long as the ring has the key.
//
// The nonce of a text is its keyed hash, so that no nonce is used for two texts: of 2^32 texts under one key, the chance
// that two share a nonce of 96 bits is below 2^-32.
type Equals struct {
	Ring *Ring
	On   bool
}

// list returns the keys; none for nil.
func (e *Equals) list() []key {
	if e == nil {
		return nil
	}
	return e.Ring.list()
}

// Snapshot returns an Equals that keeps the keys of now when those of the ring are replaced. A transaction that stores
// many texts uses one, so that it stores a text that comes twice alike, and its database notices.
func (e *Equals) Snapshot() *Equals {
	if e == nil {
		return nil
	}
	keys, fixed := e.list(), &Ring{}
	fixed.keys.Store(&keys)
	return &Equals{fixed, e.On}
}

// Seal returns a text as it is to be stored.
func (e *Equals) Seal(text, place string) string {
	if keys := e.list(); len(keys) > 0 && e.On {
		return keys[0].sealEqual(text, place)
	}
	return text
}

// Forms returns all forms in which a text may be stored, that of Seal first.
func (e *Equals) Forms(text, place string) []string {
	forms := []string{text}
	for _, k := range e.list() {
		forms = append(forms, k.sealEqual(text, place))
	}
	if len(forms) > 1 && e.On {
		forms[0], forms[1] = forms[1], forms[0]
	}
	return forms
}

// Open returns the text that was stored. ErrNoKey; another error for one that was changed, or moved from its place.
func (e *Equals) Open(stored, place string) (string, error) {
	if !SealedEqual(stored) {
		return stored, nil
	}
	return openBy(e.list(), strings.TrimPrefix(stored, equalsPrefix), place)
}

// SealedEqual reports whether a text is one that Equals encrypted.
func SealedEqual(stored string) bool { return strings.HasPrefix(stored, equalsPrefix) }

// Unreadable returns the ranges of encrypted texts that no key of the ring opens, as databases order texts by their
// bytes: each from its first bound, and below its second. They lie between the prefixes of the keys' own texts.
func (e *Equals) Unreadable() (ranges [][2]string) {
	var ids []string
	for _, k := range e.list() {
		ids = append(ids, k.id)
	}
	slices.Sort(ids)
	from := equalsPrefix
	for _, id := range slices.Compact(ids) {
		ranges = append(ranges, [2]string{from, equalsPrefix + id + ":"})
		// The byte after the colon.
		from = equalsPrefix + id + ";"
	}
	return append(ranges, [2]string{from, "\x02"})
}

// Renew returns a stored text as it is to be stored from now on: an encrypted one under the first key, a plain one as
// Seal stores it. Its errors are those of Open.
func (e *Equals) Renew(stored, place string) (string, error) {
	text, err := e.Open(stored, place)
	if err != nil || !SealedEqual(stored) {
		return e.Seal(text, place), err
	}
	return e.list()[0].sealEqual(text, place), nil
}

// sealEqual encrypts with a nonce that only the same text of the same place has.
func (k *key) sealEqual(text, place string) string {
	h := hmac.New(sha256.New, k.nonces)
	// Places have no byte 0.
	h.Write([]byte(place + "\x00" + text))
	nonce := h.Sum(nil)[:k.seal.NonceSize():k.seal.NonceSize()]
	return equalsPrefix + k.id + ":" + base64.RawStdEncoding.EncodeToString(k.seal.Seal(nonce, nonce, []byte(text), []byte(place)))
}

// open decrypts what stands behind the key's id.
func (k *key) open(body, place string) (string, error) {
	raw, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil || len(raw) < k.seal.NonceSize() {
		return "", errors.New("keyring: an encrypted text is damaged")
	}
	size := k.seal.NonceSize()
	text, err := k.seal.Open(nil, raw[:size], raw[size:], []byte(place))
	if err != nil {
		return "", fmt.Errorf("keyring: an encrypted text was changed: %w", err)
	}
	return string(text), nil
}
