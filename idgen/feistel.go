// Package idgen makes ids that are unique without a word between those who make
// them: from the time and a daily count, from the time and a leased worker, from
// a sequence in blocks, at random; and the keyed permutation under which claim
// ids, and any other number, hide how many there are.
//
// # Basics
//
// NewDaily, OpenSnowflake and NewSequence take what they need in leases, so that
// an id costs nanoseconds; UUID asks nobody. docs/IDS.md compares them.
//
// # Caveats
//
// All but UUID are as unique as their Counter is lasting: one that forgets gives
// numbers twice.
package idgen

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"sync"
)

// KeySize is the length of a Feistel key in bytes (AES-128).
const KeySize = 16

// rounds is twice the four that make a Luby-Rackoff network a strong
// pseudo-random permutation when the round function is one.
const rounds = 8

const halfMask = 1<<40 - 1

// Feistel is a keyed permutation of 80-bit blocks: a balanced Feistel network
// of eight rounds over 40-bit halves, with AES-128 of (round, half) as the
// round function (Luby and Rackoff, 1988). The mapping hides order and volume;
// it is not an authenticator. Safe for concurrent use.
type Feistel struct{ block cipher.Block }

// scratches are blocks for the rounds: one goes to the heap, since the compiler
// cannot see through the cipher's interface, and there is one for each claim.
var scratches = sync.Pool{New: func() any { return new([aes.BlockSize]byte) }}

// NewFeistel returns the permutation of a key of KeySize bytes.
func NewFeistel(key []byte) (*Feistel, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("idgen: the key has %d bytes, want %d", len(key), KeySize)
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("idgen: %w", err)
	}
	return &Feistel{block: b}, nil
}

// Seal maps a block to its image.
func (f *Feistel) Seal(in [10]byte) [10]byte {
	scratch := scratches.Get().(*[aes.BlockSize]byte)
	defer scratches.Put(scratch)
	l, r := split(in)
	for i := range uint64(rounds) {
		l, r = r, l^f.round(scratch, i, r)
	}
	return join(l, r)
}

// Open maps an image back to its block.
func (f *Feistel) Open(in [10]byte) [10]byte {
	scratch := scratches.Get().(*[aes.BlockSize]byte)
	defer scratches.Put(scratch)
	l, r := split(in)
	for i := rounds - 1; i >= 0; i-- {
		l, r = r^f.round(scratch, uint64(i), l), l
	}
	return join(l, r)
}

func (f *Feistel) round(b *[aes.BlockSize]byte, i, half uint64) uint64 {
	binary.BigEndian.PutUint64(b[:8], i)
	binary.BigEndian.PutUint64(b[8:], half)
	f.block.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint64(b[:8]) & halfMask
}

func split(b [10]byte) (l, r uint64) {
	l = uint64(b[0])<<32 | uint64(binary.BigEndian.Uint32(b[1:5]))
	r = uint64(b[5])<<32 | uint64(binary.BigEndian.Uint32(b[6:10]))
	return l, r
}

func join(l, r uint64) (b [10]byte) {
	b[0], b[5] = byte(l>>32), byte(r>>32)
	binary.BigEndian.PutUint32(b[1:5], uint32(l))
	binary.BigEndian.PutUint32(b[6:10], uint32(r))
	return b
}
