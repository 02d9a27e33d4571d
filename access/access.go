package access

import (
	"context"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
)

// APIKey is a key of the admin API. The key itself is shown once, at
// creation; the ledger keeps its SHA-256.
type APIKey struct {
	ID        string
	Name      string
	Role      Role
	Hash      []byte
	CreatedAt time.Time
	// RevokedAt is zero for a key that was not revoked, ExpiresAt for one without end.
	RevokedAt, ExpiresAt time.Time
	// LastUsedAt is when the key was used last, to some half a minute; zero for never.
	LastUsedAt time.Time
	// Scopes narrow what the role may do; nil for all of it.
	Scopes *Scopes
	// Person is the subject of the one who signed in at an identity provider; empty for a key that was made.
	Person string
	// Roots are the people and keys that the key comes from, as Origins says; nil for one of no other origin than itself.
	Roots []string
}

// Origins names those who may have seen the key: the subject of a person, or the id of a key that no other key has made.
// A key that was made over HTTP has the origins of the key that made it, and one that another key has rotated has those
// of both. So two keys of one administrator have an origin in common, however the second one was made.
func (k *APIKey) Origins() []string {
	switch {
	case len(k.Roots) > 0:
		return k.Roots
	case k.Person != "":
		return []string{k.Person}
	}
	return []string{k.ID}
}

// expired reports whether the key has ended by itself.
func (k *APIKey) expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// endsSoon is how long before its end those who use a key are told.
const endsSoon = 14 * 24 * time.Hour

// EndsSoon reports whether a key ends within two weeks. That of a person's sign-in does not
// count: they sign in again.
func (k *APIKey) EndsSoon(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && k.Person == "" && k.ExpiresAt.Sub(now) < endsSoon
}

// StoredRequest is a remembered answer of an admin request.
type StoredRequest struct {
	Caller string
	Key    string
	// Hash covers method, path and body.
	Hash   []byte
	Status int
	Body   []byte
	At     time.Time
}

// Ledger keeps API keys, the admin log, and answers.
type Ledger interface {
	// InsertKey stores a key. ErrAlreadyExists.
	InsertKey(ctx context.Context, k *APIKey) error
	// KeyByHash returns a key that is not revoked. ErrNotFound.
	KeyByHash(ctx context.Context, hash []byte) (*APIKey, error)
	// Keys lists all keys, newest first.
	Keys(ctx context.Context) ([]APIKey, error)
	// RevokeKey ends a key. ErrNotFound.
	RevokeKey(ctx context.Context, id string, at time.Time) error
	// ExpireKey has a key end at a time, unless it ends earlier. ErrNotFound.
	ExpireKey(ctx context.Context, id string, at time.Time) error
	// TouchKeys notes when keys were used last. An earlier time changes nothing.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
	// Request returns the remembered answer of (caller, key). ErrNotFound.
	Request(ctx context.Context, caller, key string) (*StoredRequest, error)
	// SaveRequest remembers an answer. ErrAlreadyExists.
	SaveRequest(ctx context.Context, r *StoredRequest) error
	// DropRequests forgets answers saved before a time.
	DropRequests(ctx context.Context, before time.Time) error
	// SaveAdminActions stores actions that are new, and the Status, Reason and After of those
	// that are there, in one transaction; each with a record in the chain, of which there is
	// one end for all nodes.
	SaveAdminActions(ctx context.Context, actions []*AdminAction) error
	// AdminActions lists newest first.
	AdminActions(ctx context.Context, f AdminActionFilter, page dibs.Page) (dibs.List[AdminAction], error)
	// DropAdminActions forgets actions from before a time, with their part of the chain.
	DropAdminActions(ctx context.Context, before time.Time) error
	// ChainLinks lists the links of the chain over the admin log after a number, oldest first.
	ChainLinks(ctx context.Context, after int64, limit int) ([]ChainLink, error)
	// ChainEnds says where the chain ends, and which entries are not in it.
	ChainEnds(ctx context.Context) (*ChainEnds, error)
}

// Access keeps API keys, the admin log, and the answers of admin requests. All methods are
// safe for concurrent use.
type Access struct {
	ledger        Ledger
	log           *slog.Logger
	life          context.Context
	now           func() time.Time
	ledgerTimeout time.Duration

	keys     keyCache
	requests requestGate
	// actions batches entries of the admin log that are written together.
	actions batch.Batcher[*savedAction]
}

// Config is what Access is made of.
type Config struct {
	Ledger        Ledger
	Logger        *slog.Logger
	Now           func() time.Time
	LedgerTimeout time.Duration
	// Life ends when the node is closed.
	Life context.Context
}

// New returns Access.
func New(c Config) *Access {
	return &Access{
		ledger: c.Ledger, log: c.Logger, life: c.Life, now: c.Now, ledgerTimeout: c.LedgerTimeout,
		keys: keyCache{
			keys: map[keyHash]cachedKey{}, unknown: map[keyHash]time.Time{}, looking: make(chan struct{}, maxKeyLookups),
			used: map[string]time.Time{}, warned: map[string]time.Time{},
		},
		requests: requestGate{running: map[[2]string]chan struct{}{}},
	}
}

// Tidy drops answers and entries of the admin log that are kept no longer, and notes when
// keys were used.
func (s *Access) Tidy(ctx context.Context) {
	logFailure(ctx, s.log, "forgetting old admin answers failed", s.ledger.DropRequests(ctx, s.now().Add(-requestKeep)))
	// A day's are dropped at once: each time adds a record to the chain.
	day := s.now().Add(-actionKeep).Truncate(24 * time.Hour)
	logFailure(ctx, s.log, "forgetting old actions failed", s.ledger.DropAdminActions(ctx, day))
	s.touchKeys(ctx)
}

// logFailure logs what failed in the background, unless that was because ctx has ended.
func logFailure(ctx context.Context, log *slog.Logger, what string, err error) {
	if err != nil && ctx.Err() == nil {
		log.Warn(what, "err", err)
	}
}

// orRefusal is err, or the refusal of what the ledger did not do.
func orRefusal(done bool, err, refusal error) error {
	if err == nil && !done {
		return refusal
	}
	return err
}

// givenTime is nil for no time, as the views show it.
func givenTime(at *time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return at
}
