package access

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// keyCacheFor is how long a checked key is not looked up again; a revoked key
// works that long at most.
const keyCacheFor = 5 * time.Second

// unknownKeyFor is how long a key that there was not is not looked up again: a
// key that was made on another machine works that late at most.
const unknownKeyFor = time.Second

// maxCachedKeys bounds what is remembered of keys, known and unknown ones apart:
// those that somebody makes up push out none that exist.
const maxCachedKeys = 1024

// keyHash is the SHA-256 of a key.
type keyHash = [sha256.Size]byte

// keyCache remembers keys that were looked up. mu guards every field but looking, and is held for no
// question to the ledger. keys and unknown have at most maxCachedKeys entries each, and no
// key is in both.
type keyCache struct {
	mu   sync.Mutex
	keys map[keyHash]cachedKey
	// unknown are keys that there were not, until when that is believed.
	unknown map[keyHash]time.Time
	// revocations counts keys that were ended here: what was read before one of
	// them is not remembered after it.
	revocations int64
	// looking has a place for each look-up, waiting counts those who want one.
	looking chan struct{}
	waiting int
	// used is when keys were used that the ledger does not know of yet, by their ids: at
	// most as many as there are keys.
	used map[string]time.Time
	// warned is when it was logged last that a key ends soon, by the key's id: at most as
	// many as there are keys.
	warned map[string]time.Time
}

// warnEvery is how often it is logged that a key ends soon.
const warnEvery = 24 * time.Hour

// warn reports whether it is time to log that a key ends soon, and notes that it is done.
func (c *keyCache) warn(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, told := c.warned[id]; told && now.Sub(at) < warnEvery {
		return false
	}
	c.warned[id] = now
	return true
}

// use notes that a key was used.
func (c *keyCache) use(id string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[id] = dibs.Ms(now)
}

// usedAt is when a key was used, as far as it is not in the ledger; zero for not.
func (c *keyCache) usedAt(id string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used[id]
}

// takeUsed returns what is to be noted in the ledger, and forgets it.
func (c *keyCache) takeUsed() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := maps.Clone(c.used)
	clear(c.used)
	return used
}

// forget has all keys looked up again: one was ended, or ends sooner than it did.
func (c *keyCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.keys)
	c.revocations++
}

type cachedKey struct {
	key   *APIKey
	until time.Time
}

// recalled is what is remembered of a key: the key while it is believed, else
// whether it was valid before, or whether there was none a moment ago.
type recalled struct {
	key             *APIKey
	before, unknown bool
	revocations     int64
}

func (c *keyCache) recall(hash keyHash, now time.Time) recalled {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, before := c.keys[hash]
	is := recalled{before: before, revocations: c.revocations}
	if before && now.Before(known.until) {
		is.key = known.key
	} else {
		is.unknown = now.Before(c.unknown[hash])
	}
	return is
}

// note remembers a key that was valid when so many were revoked.
func (c *keyCache) note(hash keyHash, k cachedKey, revocations int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revocations != revocations {
		// It may be the one that was revoked meanwhile.
		return
	}
	if len(c.keys) >= maxCachedKeys {
		clear(c.keys)
	}
	c.keys[hash] = k
	delete(c.unknown, hash)
}

// noteUnknown remembers that there was no such key, or none any more.
func (c *keyCache) noteUnknown(hash keyHash, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unknown) >= maxCachedKeys {
		clear(c.unknown)
	}
	c.unknown[hash] = now.Add(unknownKeyFor)
	delete(c.keys, hash)
}

// forgetUnknown lets keys be looked up that there were not: one was made.
func (c *keyCache) forgetUnknown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.unknown)
}

// enter takes the turn of a key that was not valid before.
func (c *keyCache) enter(ctx context.Context) (free func(), err error) {
	c.mu.Lock()
	full := c.waiting >= maxKeysWaiting
	if !full {
		c.waiting++
	}
	c.mu.Unlock()
	if full {
		return nil, tooManyKeys
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
	}()
	patience := time.NewTimer(keyPatience)
	defer patience.Stop()
	select {
	case c.looking <- struct{}{}:
		return func() { <-c.looking }, nil
	case <-patience.C:
		return nil, tooManyKeys
	case <-ctx.Done():
		return nil, dibs.Unavail(dibs.EffectNone, ctx.Err())
	}
}
