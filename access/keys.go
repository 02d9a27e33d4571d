package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// NewKey makes an API key of a fresh secret, to be stored with
// Access.InsertKey. It is for programs that have a ledger and no service;
// *Error of InvalidRequest.
func NewKey(name string, role Role, now time.Time) (*APIKey, string, error) {
	secret := keyPrefix + strings.ToLower(rand.Text()) + strings.ToLower(rand.Text())[:8]
	k, err := keyOf(name, role, secret, now)
	return k, secret, err
}

// keyOf is the key of a secret.
func keyOf(name string, role Role, secret string, now time.Time) (*APIKey, error) {
	if fs := dibs.TextFault("/name", name, true, dibs.MaxIDLen); fs != nil {
		return nil, dibs.Invalid(fs...)
	}
	if !role.May(RoleViewer) {
		return nil, dibs.Invalid(dibs.Fault{Field: "/role", Problem: dibs.Text{EN: "must be viewer, editor, publisher or admin", ZH: "必须是 viewer、editor、publisher 或 admin"}})
	}
	hash := sha256.Sum256([]byte(secret))
	return &APIKey{ID: dibs.NewID("k-"), Name: name, Role: role, Hash: hash[:], CreatedAt: dibs.Ms(now)}, nil
}

// CreateKey makes an API key. The secret is shown this once: the ledger keeps
// its hash.
func (s *Access) CreateKey(ctx context.Context, name string, role Role) (*APIKey, string, error) {
	k, secret, err := NewKey(name, role, s.now())
	if err != nil {
		return nil, "", err
	}
	return k, secret, s.ledger.InsertKey(ctx, k)
}

// EnsureKey makes sure that a given secret is an admin key. A key with this
// secret that was revoked stays revoked, and is an error.
func (s *Access) EnsureKey(ctx context.Context, name, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !dibs.ValidKey(secret) {
		return nil, dibs.Invalid(dibs.Fault{Field: "/admin_key", Problem: dibs.Textf("must be %d-255 visible characters", "必须是 %d-255 个可见字符", MinKeyLen)})
	}
	k, err := keyOf(name, RoleAdmin, secret, s.now())
	if err != nil {
		return nil, err
	}
	if err = s.ledger.InsertKey(ctx, k); !errors.Is(err, dibs.ErrAlreadyExists) {
		s.keys.forgetUnknown()
		return k, err
	}
	k, err = s.CheckKey(ctx, secret)
	if errors.Is(err, badKey) {
		return nil, dibs.Fail(dibs.Forbidden, dibs.Text{EN: "this admin key was revoked", ZH: "该管理密钥已被吊销"})
	}
	return k, err
}

// CheckKey returns the key of a secret; an *Error of Unauthenticated when there
// is none, of Overloaded when too many keys that were not valid before are tried
// at once. What cannot be a key, or was none a moment ago, is not looked up.
func (s *Access) CheckKey(ctx context.Context, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !dibs.ValidKey(secret) {
		return nil, badKey
	}
	hash := sha256.Sum256([]byte(secret))
	is := s.keys.recall(hash, s.now())
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
	now := s.now()
	k, err := s.ledger.KeyByHash(ctx, hash[:])
	if errors.Is(err, dibs.ErrNotFound) {
		s.keys.noteUnknown(hash, now)
		return nil, badKey
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	s.keys.note(hash, cachedKey{k, now.Add(keyCacheFor)}, is.revocations)
	return k, nil
}

// ListKeys lists all API keys, newest first; revoked ones too.
func (s *Access) ListKeys(ctx context.Context) ([]APIKey, error) { return s.ledger.Keys(ctx) }

// RevokeKey ends a key: at once on this node, within seconds on others.
// ErrNotFound.
func (s *Access) RevokeKey(ctx context.Context, id string) error {
	if err := s.ledger.RevokeKey(ctx, id, dibs.Ms(s.now())); err != nil {
		return err
	}
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	s.keys.keys = nil
	s.keys.revocations++
	return nil
}

// keyPrefix begins every API key, so that leaked ones can be searched for.
const keyPrefix = "dibs_"

// MinKeyLen is the least length of an API key that is given, not made.
const MinKeyLen = 16

// maxKeyLookups is how many keys that were not valid before may be looked up at
// once, maxKeysWaiting how many may wait for their turn, and keyPatience how long.
const (
	maxKeyLookups  = 8
	maxKeysWaiting = 256
	keyPatience    = 2 * time.Second
)

var (
	badKey = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the API key is unknown or revoked", ZH: "API 密钥无效或已吊销"})
	// tooManyKeys answers while keys that nobody knows are tried in numbers.
	tooManyKeys = &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: time.Second, Detail: dibs.Text{EN: "too many unknown API keys are tried at once", ZH: "尝试的未知 API 密钥过多"}}
)
