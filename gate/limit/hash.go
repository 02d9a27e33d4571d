package limit

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/dchest/siphash"

	"github.com/dibs-dev/dibs"
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

// SetKey has names hashed under another key from the next claim on: limits of users, addresses and devices count anew.
// Nodes that share count each for themselves until all have the key. An error for a key that is not of KeySize bytes,
// which changes nothing.
func (l *Limiter) SetKey(key []byte) error {
	if key == nil {
		return errNoKey
	}
	next, err := newHashKey(key)
	if err != nil {
		return err
	}
	l.making.Lock()
	defer l.making.Unlock()
	l.key = next
	l.makeRules()
	l.campaigns.Range(func(number, v any) bool {
		// A gate that is there does not change: claims read it.
		old := v.(*campaignLimits)
		renewed := &campaignLimits{spec: old.spec, rules: slices.Clone(old.rules), buckets: old.buckets}
		renewed.usedAt.Store(old.usedAt.Load())
		for i := range renewed.rules {
			renewed.rules[i].key = next.derive(renewed.rules[i].id)
		}
		l.campaigns.Store(number, renewed)
		return true
	})
	return nil
}

// makeRules makes the limits of the server that count names; making is held, or the limiter not in use yet.
func (l *Limiter) makeRules() {
	for _, r := range []struct {
		spec *dibs.LimitSpec
		per  string
		to   *atomic.Pointer[rule]
	}{{l.cfg.User, "user", &l.user}, {l.cfg.Address, "address", &l.address}} {
		if r.spec != nil {
			made := l.keyedRule(*r.spec, r.per, 0)
			r.to.Store(&made)
		}
	}
}

var errNoKey = errors.New("limit: a key is required")

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
