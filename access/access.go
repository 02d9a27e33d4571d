package access

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
)

// Role is what an API key may do.
type Role string

// roles are all roles, the least first.
var roles = []Role{RoleViewer, RoleEditor, RolePublisher, RoleAdmin}

// May reports whether a role may do what another one may. A role that there is
// not may do nothing.
func (r Role) May(other Role) bool {
	has, needs := slices.Index(roles, r), slices.Index(roles, other)
	return needs >= 0 && has >= needs
}

// APIKey is a key of the admin API. The key itself is shown once, at
// creation; the ledger keeps its SHA-256.
type APIKey struct {
	ID        string
	Name      string
	Role      Role
	Hash      []byte
	CreatedAt time.Time
	// RevokedAt is zero while the key is valid.
	RevokedAt time.Time
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
	// Request returns the remembered answer of (caller, key). ErrNotFound.
	Request(ctx context.Context, caller, key string) (*StoredRequest, error)
	// SaveRequest remembers an answer. ErrAlreadyExists.
	SaveRequest(ctx context.Context, r *StoredRequest) error
	// DropRequests forgets answers saved before a time.
	DropRequests(ctx context.Context, before time.Time) error
	// SaveActs stores acts that are new, and the Status, Reason and After of those
	// that are there, in one transaction.
	SaveActs(ctx context.Context, acts []*Act) error
	// Acts lists newest first.
	Acts(ctx context.Context, f ActFilter, page dibs.Page) (dibs.List[Act], error)
	// DropActs forgets acts from before a time.
	DropActs(ctx context.Context, before time.Time) error
}

// Access keeps API keys, the admin log, and the answers of admin requests.
type Access struct {
	ledger        Ledger
	log           *slog.Logger
	life          context.Context
	now           func() time.Time
	ledgerTimeout time.Duration

	keys     keyCache
	requests requestGate
	// acts gathers entries of the admin log that are written together.
	acts batch.Batcher[*savedAct]
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
	return &Access{ledger: c.Ledger, log: c.Logger, life: c.Life, now: c.Now, ledgerTimeout: c.LedgerTimeout}
}

// Tidy drops answers and entries of the admin log that are kept no longer.
func (s *Access) Tidy(ctx context.Context) {
	s.forgetRequests(ctx)
	s.forgetActs(ctx)
}
