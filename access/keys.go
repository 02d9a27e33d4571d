package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
)

// NewKey makes an API key of a fresh secret, to be stored with Ledger.InsertKey. It is for
// programs that have a ledger and no service; *Error of InvalidRequest.
func NewKey(spec KeySpec, now time.Time) (*APIKey, string, error) {
	secret := keyPrefix + strings.ToLower(rand.Text()) + strings.ToLower(rand.Text())[:8]
	k, err := keyOf(spec, secret, now)
	return k, secret, err
}

// keyOf is the key of a secret.
func keyOf(spec KeySpec, secret string, now time.Time) (*APIKey, error) {
	if fs := spec.Faults(now); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	hash := sha256.Sum256([]byte(secret))
	k := &APIKey{ID: dibs.NewID("k-"), Name: spec.Name, Role: spec.Role, Hash: hash[:], CreatedAt: dibs.Ms(now)}
	if !spec.ExpiresAt.IsZero() {
		k.ExpiresAt = dibs.Ms(spec.ExpiresAt)
	}
	if !spec.Scopes.Empty() {
		k.Scopes = spec.Scopes
	}
	return k, nil
}

// CreateKey makes an API key without an end. The secret is shown this once: the ledger
// keeps its hash.
func (s *Access) CreateKey(ctx context.Context, name string, role Role) (*APIKey, string, error) {
	return s.AddKey(ctx, KeySpec{Name: name, Role: role})
}

// AddKey is CreateKey for a key with terms, which has the origins of the key that makes it; none for one that no key
// makes. *Error of InvalidRequest.
func (s *Access) AddKey(ctx context.Context, spec KeySpec, origins ...string) (*APIKey, string, error) {
	k, secret, err := NewKey(spec, s.now())
	if err != nil {
		return nil, "", err
	}
	k.Roots = origins
	return k, secret, s.ledger.InsertKey(ctx, k)
}

// Key returns a key by its id, a revoked one too. *Error of NotFound.
func (s *Access) Key(ctx context.Context, id string) (*APIKey, error) {
	keys, err := s.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if keys[i].ID == id {
			return &keys[i], nil
		}
	}
	return nil, noKey
}

// RotateKey makes a key like another one, which ends after an overlap: until then both are
// valid. origins are those of the key that asks: it sees the new key. *Error of NotFound; of InvalidState for a key that
// is not valid any more, or has too many origins then.
func (s *Access) RotateKey(ctx context.Context, id string, r KeyRotation, origins ...string) (*APIKey, string, error) {
	overlap, err := r.Span()
	if err != nil {
		return nil, "", err
	}
	old, err := s.Key(ctx, id)
	if err != nil {
		return nil, "", err
	}
	k, secret, err := old.Successor(s.now())
	if err == nil {
		err = k.addOrigins(origins)
	}
	if err == nil {
		err = s.ledger.InsertKey(ctx, k)
	}
	if err == nil {
		// Where this fails, there are two keys, and the caller may rotate again.
		err = s.ledger.ExpireKey(ctx, id, dibs.Ms(s.now().Add(overlap)))
	}
	if err != nil {
		return nil, "", err
	}
	s.keys.forget()
	return k, secret, nil
}

// Successor makes a key with the same name, role, scopes and origins, and without an end. *Error of
// InvalidState for a key that is not valid any more, or is a person's: they sign in again.
func (k *APIKey) Successor(now time.Time) (*APIKey, string, error) {
	if !k.RevokedAt.IsZero() || k.expired(now) || k.Person != "" {
		return nil, "", dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the key is not valid any more", ZH: "该密钥已失效"})
	}
	next, secret, err := NewKey(KeySpec{Name: k.Name, Role: k.Role, Scopes: k.Scopes}, now)
	if err == nil {
		next.Roots = k.Origins()
	}
	return next, secret, err
}

// maxOrigins bounds the origins of a key, which ledgers keep in 4 KiB. Only rotations by keys of ever other origins add
// to them.
const maxOrigins = 7

// addOrigins adds those who see a key that has origins.
func (k *APIKey) addOrigins(more []string) error {
	all := slices.Clone(k.Roots)
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if k.Roots = all; len(all) > maxOrigins {
		return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "too many administrators have rotated this key: make a new one", ZH: "轮换过该密钥的管理员过多：请新建密钥"})
	}
	return nil
}

// EnsureKey makes sure that a given secret is an admin key. A key with this
// secret that was revoked stays revoked, and is an error.
func (s *Access) EnsureKey(ctx context.Context, name, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !dibs.IsVisibleASCII(secret) {
		return nil, dibs.Invalid(dibs.Fault{Field: "/admin_key", Problem: dibs.Textf("must be %d-255 visible characters", "必须是 %d-255 个可见字符", MinKeyLen)})
	}
	k, err := keyOf(KeySpec{Name: name, Role: RoleAdmin}, secret, s.now())
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
// at once. A text that cannot be a key, or was none a moment ago, is not looked up.
func (s *Access) CheckKey(ctx context.Context, secret string) (*APIKey, error) {
	if len(secret) < MinKeyLen || !dibs.IsVisibleASCII(secret) {
		return nil, badKey
	}
	hash := sha256.Sum256([]byte(secret))
	is := s.keys.recall(hash, s.now())
	switch {
	case is.key != nil && is.key.expired(s.now()):
		return nil, badKey
	case is.key != nil:
		s.keys.use(is.key.ID, s.now())
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
	if errors.Is(err, dibs.ErrNotFound) || err == nil && k.expired(now) {
		s.keys.noteUnknown(hash, now)
		return nil, badKey
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	s.keys.note(hash, cachedKey{k, now.Add(keyCacheFor)}, is.revocations)
	s.keys.use(k.ID, now)
	if k.EndsSoon(now) && s.keys.warn(k.ID, now) {
		s.log.Warn("an API key that is in use ends soon: make its successor, and give it to the program that uses the key",
			"key", k.ID, "name", k.Name, "ends", k.ExpiresAt, "do", "dibs key rotate "+k.ID)
	}
	return k, nil
}

// ListKeys lists all API keys, newest first; revoked ones too.
func (s *Access) ListKeys(ctx context.Context) ([]APIKey, error) {
	keys, err := s.ledger.Keys(ctx)
	for i := range keys {
		// The use that this node saw last may be on its way to the ledger.
		if at := s.keys.usedAt(keys[i].ID); at.After(keys[i].LastUsedAt) {
			keys[i].LastUsedAt = at
		}
	}
	return keys, err
}

// touchKeys notes in the ledger when keys were used. When it fails, the next use is
// noted.
func (s *Access) touchKeys(ctx context.Context) {
	used := s.keys.takeUsed()
	if len(used) == 0 {
		return
	}
	logFailure(ctx, s.log, "noting when API keys were used failed", s.ledger.TouchKeys(ctx, used))
}

// RevokeKey ends a key: at once on this node, within seconds on others.
// ErrNotFound.
func (s *Access) RevokeKey(ctx context.Context, id string) error {
	if err := s.ledger.RevokeKey(ctx, id, dibs.Ms(s.now())); err != nil {
		return err
	}
	s.keys.forget()
	return nil
}

// ForgetKeys has this node look up all keys again: some may have been ended by other means than RevokeKey.
func (s *Access) ForgetKeys() { s.keys.forget() }

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
	noKey  = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such API key", ZH: "该 API 密钥不存在"})
	badKey = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the API key is unknown, revoked or expired", ZH: "API 密钥无效、已吊销或已过期"})
	// tooManyKeys answers while keys that nobody knows are tried in numbers.
	tooManyKeys = faults.Busy(time.Second, dibs.Text{EN: "too many unknown API keys are tried at once", ZH: "尝试的未知 API 密钥过多"})
)
