package dibs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"
)

// keyPrefix begins every API key, so that leaked ones can be searched for.
const keyPrefix = "dibs_"

// MinKeyLen is the least length of an API key that is given, not made.
const MinKeyLen = 16

// keyCacheFor is how long a checked key is not looked up again; a revoked key
// works that long at most.
const keyCacheFor = 5 * time.Second

// unknownKeyFor is how long a key that there was not is not looked up again: a
// key that was made on another machine works that late at most.
const unknownKeyFor = time.Second

// maxCachedKeys bounds what is remembered of keys, known and unknown ones apart:
// those that somebody makes up push out none that exist.
const maxCachedKeys = 1024

// maxKeyLookups is how many keys that were not valid before may be looked up at
// once, maxKeysWaiting how many may wait for their turn, and keyPatience how long.
const (
	maxKeyLookups  = 8
	maxKeysWaiting = 256
	keyPatience    = 2 * time.Second
)

// keyCache remembers keys that were looked up.
type keyCache struct {
	mu   sync.Mutex
	keys map[[sha256.Size]byte]cachedKey
	// unknown are keys that there were not, until when that is believed.
	unknown map[[sha256.Size]byte]time.Time
	// revocations counts keys that were ended here: what was read before one of
	// them is not remembered after it.
	revocations int64
	// looking has a place for each look-up, waiting counts those who want one.
	looking chan struct{}
	waiting int
}

type cachedKey struct {
	key   *APIKey
	until time.Time
}

var (
	badKey = Fail(Unauthenticated, Text{"the API key is unknown or revoked", "API 密钥无效或已吊销"})
	// tooManyKeys answers while keys that nobody knows are tried in numbers.
	tooManyKeys = &Error{Reason: Overloaded, Effect: EffectNone, RetryAfter: time.Second, Detail: Text{"too many unknown API keys are tried at once", "尝试的未知 API 密钥过多"}}
)

// NewKey makes an API key of a fresh secret, to be stored with
// Access.InsertKey. It is for programs that have a ledger and no service;
// *Error of InvalidRequest.
func NewKey(name string, role Role, now time.Time) (*APIKey, string, error) {
	secret := keyPrefix + strings.ToLower(rand.Text()) + strings.ToLower(rand.Text())[:8]
	k, err := keyOf(name, role, secret, now)
	return k, secret, err
}

// CreateKey makes an API key. The secret is shown this once: the ledger keeps
// its hash.
func (s *Service) CreateKey(ctx context.Context, name string, role Role) (*APIKey, string, error) {
	k, secret, err := NewKey(name, role, s.cfg.Now())
	if err != nil {
		return nil, "", err
	}
	return k, secret, s.ledger.InsertKey(ctx, k)
}

// EnsureKey makes sure that a given secret is an admin key. A key with this
// secret that was revoked stays revoked, and is an error.
func (s *Service) EnsureKey(ctx context.Context, name, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !validKey(secret) {
		return nil, Invalid(Fault{"/admin_key", Textf("must be %d-255 visible characters", "必须是 %d-255 个可见字符", MinKeyLen)})
	}
	k, err := keyOf(name, RoleAdmin, secret, s.cfg.Now())
	if err != nil {
		return nil, err
	}
	if err = s.ledger.InsertKey(ctx, k); !errors.Is(err, ErrAlreadyExists) {
		s.keys.forgetUnknown()
		return k, err
	}
	k, err = s.CheckKey(ctx, secret)
	if errors.Is(err, badKey) {
		return nil, Fail(Forbidden, Text{"this admin key was revoked", "该管理密钥已被吊销"})
	}
	return k, err
}

// keyOf is the key of a secret.
func keyOf(name string, role Role, secret string, now time.Time) (*APIKey, error) {
	if fs := textFault("/name", name, true, MaxIDLen); fs != nil {
		return nil, Invalid(fs...)
	}
	if !role.May(RoleViewer) {
		return nil, Invalid(Fault{"/role", Text{"must be viewer, editor, publisher or admin", "必须是 viewer、editor、publisher 或 admin"}})
	}
	hash := sha256.Sum256([]byte(secret))
	return &APIKey{ID: newID("k-"), Name: name, Role: role, Hash: hash[:], CreatedAt: ms(now)}, nil
}

// CheckKey returns the key of a secret; an *Error of Unauthenticated when there
// is none, of Overloaded when too many keys that were not valid before are tried
// at once. What cannot be a key, or was none a moment ago, is not looked up.
func (s *Service) CheckKey(ctx context.Context, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !validKey(secret) {
		return nil, badKey
	}
	hash := sha256.Sum256([]byte(secret))
	is := s.keys.recall(hash, s.cfg.Now())
	switch {
	case is.key != nil:
		return is.key, nil
	case is.unknown:
		return nil, badKey
	case !is.before:
		free, err := s.keys.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer free()
	}
	now := s.cfg.Now()
	k, err := s.ledger.KeyByHash(ctx, hash[:])
	if errors.Is(err, ErrNotFound) {
		s.keys.noteUnknown(hash, now)
		return nil, badKey
	}
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	s.keys.note(hash, cachedKey{k, now.Add(keyCacheFor)}, is.revocations)
	return k, nil
}

// recalled is what is remembered of a key: the key while it is believed, else
// whether it was valid before, or whether there was none a moment ago.
type recalled struct {
	key             *APIKey
	before, unknown bool
	revocations     int64
}

func (c *keyCache) recall(hash [sha256.Size]byte, now time.Time) recalled {
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
func (c *keyCache) note(hash [sha256.Size]byte, k cachedKey, revocations int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revocations != revocations {
		// It may be the one that was revoked meanwhile.
		return
	}
	if c.keys == nil || len(c.keys) >= maxCachedKeys {
		c.keys = make(map[[sha256.Size]byte]cachedKey)
	}
	c.keys[hash] = k
	delete(c.unknown, hash)
}

// noteUnknown remembers that there was no such key, or none any more.
func (c *keyCache) noteUnknown(hash [sha256.Size]byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unknown == nil || len(c.unknown) >= maxCachedKeys {
		c.unknown = make(map[[sha256.Size]byte]time.Time)
	}
	c.unknown[hash] = now.Add(unknownKeyFor)
	delete(c.keys, hash)
}

// forgetUnknown lets keys be looked up that there were not: one was made.
func (c *keyCache) forgetUnknown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown = nil
}

// enter takes the turn of a key that was not valid before.
func (c *keyCache) enter(ctx context.Context) (free func(), err error) {
	c.mu.Lock()
	if c.looking == nil {
		c.looking = make(chan struct{}, maxKeyLookups)
	}
	looking := c.looking
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
	case looking <- struct{}{}:
		return func() { <-looking }, nil
	case <-patience.C:
		return nil, tooManyKeys
	case <-ctx.Done():
		return nil, Unavail(EffectNone, ctx.Err())
	}
}

// Keys lists all API keys, newest first; revoked ones too.
func (s *Service) Keys(ctx context.Context) ([]APIKey, error) { return s.ledger.Keys(ctx) }

// RevokeKey ends a key: at once on this node, within seconds on others.
// ErrNotFound.
func (s *Service) RevokeKey(ctx context.Context, id string) error {
	if err := s.ledger.RevokeKey(ctx, id, ms(s.cfg.Now())); err != nil {
		return err
	}
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	s.keys.keys = nil
	s.keys.revocations++
	return nil
}
