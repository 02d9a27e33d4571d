// Package seal makes short signed texts that one user can use for one campaign
// until a time: admissions and tickets. Checking one takes the memory of this
// process alone, and about as long as two blocks of SHA-256.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
	"sync/atomic"
	"time"
)

// MinKey is the least length of a key, in bytes.
const MinKey = 16

const (
	untilBytes = 6
	macBytes   = 18
	sealBytes  = untilBytes + macBytes
)

// Len is the length of a sealed text, in characters.
const Len = sealBytes / 3 * 4

// Verdict is what a sealed text turned out to be.
type Verdict uint8

// The verdicts.
const (
	// Missing: there is no text.
	Missing Verdict = iota
	// Valid: it is this user's, for this campaign, now.
	Valid
	// Expired: it was valid until a time that has passed.
	Expired
	// Foreign: it is another user's, another campaign's, or nobody ever sealed it.
	// Nothing tells these apart: who and what for is not in the text, only signed.
	Foreign
)

// Sealer seals texts for one purpose. It is safe for concurrent use.
type Sealer struct {
	purpose string
	// keys are replaced as a whole.
	keys atomic.Pointer[keys]
}

// keys are the key that seals, and the one before, which opens until a time in milliseconds since 1970; nil for none.
type keys struct {
	current, former *keyed
	until           int64
}

// keyed has the memory of checks under one key.
type keyed struct{ states sync.Pool }

// state is the memory of one check, used again.
type state struct {
	mac  hash.Hash
	buf  []byte
	sum  [sha256.Size]byte
	text [Len]byte
	raw  [sealBytes]byte
}

// New returns a sealer: texts of one purpose are worth nothing for another one,
// though the key is the same. The key has at least MinKey bytes, or New panics:
// a short key is a mistake of the program, not of a user.
func New(key []byte, purpose string) *Sealer {
	if len(key) < MinKey {
		panic("seal: the key is too short")
	}
	s := &Sealer{purpose: purpose}
	s.keys.Store(&keys{current: newKeyed(key)})
	return s
}

func newKeyed(key []byte) *keyed {
	k := &keyed{}
	k.states.New = func() any {
		return &state{mac: hmac.New(sha256.New, key), buf: make([]byte, 0, 128)}
	}
	return k
}

// Renew seals with another key from now on. Texts that the key before has sealed are opened until a time, and those
// of the key before that one no longer. An error for a key of less than MinKey bytes, which changes nothing. Calls come one
// after the other.
func (s *Sealer) Renew(key []byte, until time.Time) error {
	if len(key) < MinKey {
		return errors.New("seal: the key is too short")
	}
	s.keys.Store(&keys{current: newKeyed(key), former: s.keys.Load().current, until: until.UnixMilli()})
	return nil
}

// encoding has no two texts for the same bytes.
var encoding = base64.RawURLEncoding.Strict()

// Seal returns the text for a user and the campaign of a number, valid until a
// time, of which whole milliseconds count.
func (s *Sealer) Seal(campaign uint32, user string, until time.Time) string {
	k := s.keys.Load().current
	st := k.states.Get().(*state)
	defer k.states.Put(st)
	s.sign(st, campaign, user, uint64(until.UnixMilli()))
	encoding.Encode(st.text[:], st.raw[:])
	return string(st.text[:])
}

// Open tells what a text is worth for a user, at a time.
func (s *Sealer) Open(text string, campaign uint32, user string, now time.Time) Verdict {
	if text == "" {
		return Missing
	}
	if len(text) != Len {
		return Foreign
	}
	all := s.keys.Load()
	v := s.open(all.current, text, campaign, user, now)
	if v == Foreign && all.former != nil && now.UnixMilli() < all.until {
		return s.open(all.former, text, campaign, user, now)
	}
	return v
}

// open is Open with one key, for a text of Len.
func (s *Sealer) open(k *keyed, text string, campaign uint32, user string, now time.Time) Verdict {
	st := k.states.Get().(*state)
	defer k.states.Put(st)
	copy(st.text[:], text)
	var given [sealBytes]byte
	if n, err := encoding.Decode(given[:], st.text[:]); err != nil || n != sealBytes {
		return Foreign
	}
	var wide [8]byte
	copy(wide[8-untilBytes:], given[:untilBytes])
	until := binary.BigEndian.Uint64(wide[:])
	s.sign(st, campaign, user, until)
	if !hmac.Equal(given[:], st.raw[:]) {
		return Foreign
	}
	if uint64(now.UnixMilli()) >= until {
		return Expired
	}
	return Valid
}

// sign puts the time and its signature into st.raw.
func (s *Sealer) sign(st *state, campaign uint32, user string, untilMS uint64) {
	var wide [8]byte
	binary.BigEndian.PutUint64(wide[:], untilMS)
	copy(st.raw[:untilBytes], wide[8-untilBytes:])
	// The purpose ends with a zero, which is in none, and all but the user has one
	// length: no two inputs are the same bytes.
	st.buf = append(append(st.buf[:0], s.purpose...), 0)
	st.buf = binary.BigEndian.AppendUint32(st.buf, campaign)
	st.buf = append(append(st.buf, st.raw[:untilBytes]...), user...)
	st.mac.Reset()
	st.mac.Write(st.buf)
	sum := st.mac.Sum(st.sum[:0])
	copy(st.raw[untilBytes:], sum[:macBytes])
}
