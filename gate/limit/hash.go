package limit

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"unsafe"

	"github.com/dchest/siphash"
)

// KeySize is the length of Config.Key.
const KeySize = 16

// hashKey is a key of SipHash-2-4. Names come from clients: without the key they
// cannot compute which ones share a bucket or a set of the table.
type hashKey struct{ k0, k1 uint64 }

// newHashKey returns the key of a configuration, a random one for nil.
func newHashKey(key []byte) (hashKey, error) {
	if key == nil {
		key = make([]byte, KeySize)
		// It never fails: it stops the program instead.
		_, _ = rand.Read(key)
	}
	if len(key) != KeySize {
		return hashKey{}, fmt.Errorf("limit: Config.Key has %d bytes, want %d", len(key), KeySize)
	}
	return hashKey{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])}, nil
}

// derive returns the key for the names of one rule, so that a name is hashed
// together with its rule at the cost of the name alone.
func (k hashKey) derive(rule string) hashKey {
	k0, k1 := siphash.Hash128(k.k0, k.k1, []byte(rule))
	return hashKey{k0, k1}
}

// of returns the hash of a name. It does not keep the name's bytes and does not
// change them.
func (k hashKey) of(name string) uint64 {
	return siphash.Hash(k.k0, k.k1, unsafe.Slice(unsafe.StringData(name), len(name)))
}

// shareID returns by what nodes know a campaign's bucket for a rule. It is FNV-1a
// as in earlier versions, so that nodes of both share during an upgrade. No client
// chooses what is hashed: it is the rule and the campaign's number.
func shareID(rule string) uint64 {
	h := fnv.New64a()
	// It never fails.
	_, _ = h.Write(append([]byte(rule), 0xff))
	return h.Sum64()
}
