package access

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Revocation says that tokens count no longer: the one with an id, or all of a user that were
// issued up to a moment.
type Revocation struct {
	ID string
	// JTI is the id of one token; User is whose tokens otherwise. One of them is empty.
	JTI, User string
	// IssuedBefore is, with User, the last moment of issue that is meant. A token that does
	// not say when it was issued is meant too.
	IssuedBefore time.Time
	Why          string
	CreatedAt    time.Time
	// ExpiresAt is when the revocation is forgotten: the tokens have ended by then.
	ExpiresAt time.Time
}

// RevocationSpec asks for one.
type RevocationSpec struct {
	JTI          string    `json:"jti,omitempty" doc:"the id of one token, its jti claim; this or user_id"`
	User         string    `json:"user_id,omitempty" doc:"all tokens of this user that were issued up to now"`
	IssuedBefore time.Time `json:"issued_before,omitzero" doc:"with user_id: tokens that were issued until then, default now; tokens without iat are revoked too"`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"when the tokens have ended by themselves, so that the revocation can be forgotten; default in 30 days, at most in 400"`
	Why          string    `json:"why,omitempty" doc:"for other administrators, at most 200 characters"`
}

// The bounds of a revocation, and how many there may be: nodes hold all of them in memory.
const (
	revokeFor      = 30 * 24 * time.Hour
	maxRevokeFor   = 400 * 24 * time.Hour
	maxJTI         = 255
	maxRevokeWhy   = 200
	MaxRevocations = 100_000
)

// revocation is what a spec asks for. *Error of InvalidRequest.
func (s *RevocationSpec) revocation(now time.Time) (*Revocation, error) {
	var fs []dibs.Fault
	fault := func(bad bool, field string, problem dibs.Text) {
		if bad {
			fs = append(fs, dibs.Fault{Field: field, Problem: problem})
		}
	}
	fault((s.JTI == "") == (s.User == ""), "", dibs.Text{EN: "exactly one of jti and user_id is required", ZH: "jti 和 user_id 必须且只能提供一个"})
	fault(s.User != "" && !dibs.IsID(s.User), "/user_id", dibs.BadID)
	fs = append(fs, dibs.TextFault("/jti", s.JTI, false, maxJTI)...)
	fs = append(fs, dibs.TextFault("/why", s.Why, false, maxRevokeWhy)...)
	fault(s.JTI != "" && !s.IssuedBefore.IsZero(), "/issued_before", dibs.Text{EN: "goes with user_id", ZH: "只能与 user_id 一起使用"})
	fault(s.IssuedBefore.After(now.Add(time.Minute)), "/issued_before", dibs.Text{EN: "must not be in the future", ZH: "不能晚于当前时间"})
	ends := s.ExpiresAt
	if ends.IsZero() {
		ends = now.Add(revokeFor)
	}
	fault(!ends.After(now) || ends.After(now.Add(maxRevokeFor)), "/expires_at", dibs.Text{EN: "must be in the future, by 400 days at most", ZH: "必须晚于当前时间，最多 400 天"})
	if len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	r := &Revocation{ID: dibs.NewID("r-"), JTI: s.JTI, User: s.User, Why: s.Why, CreatedAt: dibs.Ms(now), ExpiresAt: dibs.Ms(ends)}
	if s.User != "" {
		r.IssuedBefore = dibs.Ms(cmp.Or(s.IssuedBefore, now))
	}
	return r, nil
}

// RevocationView is a revocation as shown.
type RevocationView struct {
	ID           string     `json:"id"`
	JTI          string     `json:"jti,omitempty"`
	User         string     `json:"user_id,omitempty"`
	IssuedBefore *time.Time `json:"issued_before,omitempty"`
	Why          string     `json:"why,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
}

// View returns the revocation as shown.
func (r *Revocation) View() RevocationView {
	return RevocationView{
		ID: r.ID, JTI: r.JTI, User: r.User, IssuedBefore: givenTime(&r.IssuedBefore), Why: r.Why, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
	}
}

// RevocationLedger keeps revocations.
type RevocationLedger interface {
	// InsertRevocation stores one, unless there are most already; then it returns false.
	InsertRevocation(ctx context.Context, r *Revocation, most int) (bool, error)
	// Revocations lists all, newest first.
	Revocations(ctx context.Context) ([]Revocation, error)
	// RevocationMark is a text that changes whenever the list does.
	RevocationMark(ctx context.Context) (string, error)
	// DeleteRevocation takes one back. ErrNotFound.
	DeleteRevocation(ctx context.Context, id string) error
	// DropRevocations forgets those that expired before a time.
	DropRevocations(ctx context.Context, before time.Time) error
}

// Revocations are the tokens that count no longer, held in memory by each node.
//
// list is replaced as a whole and never changed, so that claims read it without a lock. mu
// lets one goroutine read the ledger at a time, so that an older list never takes the place
// of a newer one; it guards mark, the ledger's at the last look.
type Revocations struct {
	ledger RevocationLedger
	log    *slog.Logger
	now    func() time.Time
	list   atomic.Pointer[revoked]
	mu     sync.Mutex
	mark   string
}

// revoked is a list as claims ask it. Times are in milliseconds since 1970.
type revoked struct {
	ids   map[string]struct{}
	users map[string]int64
}

// NewRevocations returns none yet: Load reads them.
func NewRevocations(ledger RevocationLedger, log *slog.Logger, now func() time.Time) *Revocations {
	return &Revocations{ledger: ledger, log: log, now: now}
}

// Has reports whether a token counts no longer, by its user, its jti (empty without one), and
// when it was issued (zero without that). It takes no lock and no memory: while nothing is
// revoked, it is one look at a pointer.
func (s *Revocations) Has(user, id string, issued time.Time) bool {
	l := s.list.Load()
	if l == nil {
		return false
	}
	if id != "" && len(l.ids) > 0 {
		if _, ok := l.ids[id]; ok {
			return true
		}
	}
	before, ok := l.users[user]
	// Tokens say the second of their issue: one of the second of the revocation is revoked.
	return ok && (issued.IsZero() || issued.UnixMilli() <= before)
}

// Load reads the list again where it has changed.
func (s *Revocations) Load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The mark is read first: what changes after it is read the next time.
	mark, err := s.ledger.RevocationMark(ctx)
	if err != nil || mark == s.mark {
		return err
	}
	all, err := s.ledger.Revocations(ctx)
	if err != nil {
		return err
	}
	var l *revoked
	if len(all) > 0 {
		l = &revoked{ids: map[string]struct{}{}, users: map[string]int64{}}
	}
	for i := range all {
		r := &all[i]
		switch {
		case !r.ExpiresAt.After(s.now()):
		case r.User == "":
			l.ids[r.JTI] = struct{}{}
		default:
			l.users[r.User] = max(l.users[r.User], r.IssuedBefore.UnixMilli())
		}
	}
	s.list.Store(l)
	s.mark = mark
	return nil
}

// revocationsEvery is how often a node looks for changes that others made.
const revocationsEvery = 500 * time.Millisecond

// Loop keeps the list as the ledger has it, until ctx ends. While the ledger does not answer,
// the last list counts.
func (s *Revocations) Loop(ctx context.Context) {
	failing := false
	for range wait.Every(ctx, revocationsEvery) {
		err := s.Load(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.Warn("reading which tokens are revoked failed; the last list stays in effect", "err", err)
		}
		failing = err != nil
	}
}

var tooManyRevoked = dibs.Fail(dibs.InvalidState, dibs.Text{
	EN: "too many tokens are revoked: change the secret that signs them instead", ZH: "吊销的令牌过多：请改为更换签名密钥",
})

// Revoke revokes tokens: at once on this node, within a second on others. *Error of
// InvalidRequest; of InvalidState for more than MaxRevocations.
func (s *Revocations) Revoke(ctx context.Context, spec RevocationSpec) (*Revocation, error) {
	r, err := spec.revocation(s.now())
	if err != nil {
		return nil, err
	}
	ok, err := s.ledger.InsertRevocation(ctx, r, MaxRevocations)
	if err := orRefusal(ok, err, tooManyRevoked); err != nil {
		return nil, err
	}
	return r, s.Load(ctx)
}

// List lists all revocations, newest first.
func (s *Revocations) List(ctx context.Context) ([]Revocation, error) {
	return s.ledger.Revocations(ctx)
}

// Revocation returns one. ErrNotFound.
func (s *Revocations) Revocation(ctx context.Context, id string) (*Revocation, error) {
	all, err := s.ledger.Revocations(ctx)
	for i := range all {
		if all[i].ID == id {
			return &all[i], nil
		}
	}
	if err == nil {
		err = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such revocation", ZH: "该吊销记录不存在"})
	}
	return nil, err
}

// Allow takes a revocation back: the tokens count again. ErrNotFound.
func (s *Revocations) Allow(ctx context.Context, id string) error {
	if err := s.ledger.DeleteRevocation(ctx, id); err != nil {
		return err
	}
	return s.Load(ctx)
}

// Tidy forgets revocations whose tokens have ended.
func (s *Revocations) Tidy(ctx context.Context) {
	logFailure(ctx, s.log, "forgetting old revocations failed", s.ledger.DropRevocations(ctx, s.now()))
}
