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

// maxCachedKeys bounds the cache; only keys that exist are cached.
const maxCachedKeys = 1024

// keyCache remembers keys that were found valid.
type keyCache struct {
	mu   sync.Mutex
	keys map[[sha256.Size]byte]cachedKey
}

type cachedKey struct {
	key   *APIKey
	until time.Time
}

var badKey = Fail(Unauthenticated, Text{"the API key is unknown or revoked", "API 密钥无效或已吊销"})

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

// CheckKey returns the key of a secret; an *Error of Unauthenticated when
// there is none.
func (s *Service) CheckKey(ctx context.Context, secret string) (*APIKey, error) {
	hash := sha256.Sum256([]byte(secret))
	now := s.cfg.Now()
	s.keys.mu.Lock()
	c, ok := s.keys.keys[hash]
	s.keys.mu.Unlock()
	if ok && now.Before(c.until) {
		return c.key, nil
	}
	k, err := s.ledger.KeyByHash(ctx, hash[:])
	if errors.Is(err, ErrNotFound) {
		return nil, badKey
	}
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	if s.keys.keys == nil || len(s.keys.keys) >= maxCachedKeys {
		s.keys.keys = make(map[[sha256.Size]byte]cachedKey)
	}
	s.keys.keys[hash] = cachedKey{k, now.Add(keyCacheFor)}
	return k, nil
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
	return nil
}
