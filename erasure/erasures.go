package erasure

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// FollowerRest is how long the row of an erased follower stays, without being
// one: nodes that have followers in memory read from it that there is one less.
const FollowerRest = 10 * time.Minute

// maxOpenErasures bounds the erasures that a node looks at in one go.
const maxOpenErasures = 100

// Ledger forgets users.
type Ledger interface {
	// UserRecord returns what there is, but for Lists and Erasure.
	UserRecord(ctx context.Context, user string) (*UserRecord, error)
	// InsertErasure stores one, which an entry of the admin log has asked for: act is its id, and the chain over the log
	// says so from then on. It sets AskedAt. Without such an entry the erasure adds one when it changes the log.
	// ErrAlreadyExists while one of the same user is not done.
	InsertErasure(ctx context.Context, e *Erasure, act string) error
	// ErasureByID returns one, ErasureOf the one of a user that is not done.
	// ErrNotFound.
	ErasureByID(ctx context.Context, id string) (*Erasure, error)
	ErasureOf(ctx context.Context, user string) (*Erasure, error)
	// ErasureList lists the newest first; open narrows it to those not done.
	ErasureList(ctx context.Context, open bool, page dibs.Page) (dibs.List[Erasure], error)
	// SaveErasure stores e where the stored Version is e.Version, and raises it in
	// e. One that is done loses UserID and Pseudonym. ErrConflict.
	SaveErasure(ctx context.Context, e *Erasure) error
	// EraseSome does a part of e's step and saves e as SaveErasure does, in one
	// transaction: some rows, and when none are left, e is at the next step. It
	// leaves alone the campaigns held, those that are published or paused and have
	// not ended at now, and red packets that are not closed. ErrConflict; then, as
	// after every error, e is as it was.
	EraseSome(ctx context.Context, e *Erasure, held map[uint32]bool, now time.Time) error
	// Balances returns what a user has, by currency.
	Balances(ctx context.Context, user string) ([]dibs.Money, error)
}

// Erasures forgets users. All methods are safe for concurrent use.
type Erasures struct {
	registry *live.Registry
	poller   *live.Poller
	engine   dibs.Engine
	ledger   Ledger
	log      *slog.Logger
	now      func() time.Time
	every    time.Duration
	rest     time.Duration
	erasers  []Eraser

	eraseKick chan struct{}
}

// Config is what Erasures is made of.
type Config struct {
	Live   *live.Node
	Engine dibs.Engine
	Ledger Ledger
	Logger *slog.Logger
	Now    func() time.Time
	// Every is how often erasures go on that had to wait; Rest is how long one that
	// finds nothing any more waits before it looks for the last time.
	Every, Rest time.Duration
	// Erasers have users in places that the ledger cannot read.
	Erasers []Eraser
}

// New returns Erasures on a node.
func New(c Config) *Erasures {
	return &Erasures{
		registry: c.Live.Registry, poller: c.Live.Poller, engine: c.Engine, ledger: c.Ledger, log: c.Logger, now: c.Now,
		every: c.Every, rest: c.Rest, erasers: c.Erasers, eraseKick: make(chan struct{}, 1),
	}
}

// Erase begins to erase a user, and returns the erasure under way when there is
// one; true then. *Error of InvalidRequest, or of InvalidState for a user who has
// money and no word on what becomes of it.
func (s *Erasures) Erase(ctx context.Context, user string, spec ErasureSpec) (ErasureView, bool, error) {
	if !dibs.IsID(user) {
		return ErasureView{}, false, dibs.Invalid(dibs.Fault{Field: "/user", Problem: dibs.BadID})
	}
	now := dibs.Ms(s.now())
	e := &Erasure{
		ID: dibs.NewID("e-"), UserID: user, Pseudonym: PseudonymPrefix + strings.ToLower(rand.Text()), LeaveBalance: spec.LeaveBalance,
		State: ErasureRunning, Step: eraseSteps[0], RequestedAt: now, UpdatedAt: now, Version: 1,
	}
	if !spec.LeaveBalance {
		if err := s.hasNothing(ctx, user); err != nil {
			return ErasureView{}, false, err
		}
	}
	err := s.ledger.InsertErasure(ctx, e, spec.Act)
	known := errors.Is(err, dibs.ErrAlreadyExists)
	if known {
		if e, err = s.ledger.ErasureOf(ctx, user); err == nil && spec.LeaveBalance && !e.LeaveBalance {
			e.LeaveBalance = true
			err = s.ledger.SaveErasure(ctx, e)
		}
	}
	if errors.Is(err, dibs.ErrConflict) || errors.Is(err, dibs.ErrNotFound) {
		err = dibs.Unavail(dibs.EffectUnknown, err)
	}
	if err != nil {
		return ErasureView{}, false, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	wait.Kick(s.eraseKick)
	return e.View(), known, nil
}

// hasNothing returns an error that names what a user has on accounts.
func (s *Erasures) hasNothing(ctx context.Context, user string) error {
	balances, err := s.ledger.Balances(ctx, user)
	if err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	var has []string
	for _, b := range balances {
		if b.Amount != 0 {
			has = append(has, b.Digits()+" "+b.Currency)
		}
	}
	if len(has) == 0 {
		return nil
	}
	return dibs.Fail(dibs.InvalidState, dibs.Textf(
		"the user's account has %s: pay it out by your own means, then ask again with leave_balance, and it stays on an account of nobody",
		"该用户账户余额 %s：请先自行结清，再携带 leave_balance 重试，余额将留在无主账户上", strings.Join(has, ", ")))
}

// Get returns an erasure. ErrNotFound.
func (s *Erasures) Get(ctx context.Context, id string) (ErasureView, error) {
	e, err := s.ledger.ErasureByID(ctx, id)
	if err != nil {
		return ErasureView{}, err
	}
	return e.View(), nil
}

// List lists erasures, the newest first.
func (s *Erasures) List(ctx context.Context, open bool, page dibs.Page) (dibs.List[Erasure], error) {
	return s.ledger.ErasureList(ctx, open, page)
}

// Record tells what there is about a user.
func (s *Erasures) Record(ctx context.Context, user string) (UserRecord, error) {
	if !dibs.IsID(user) {
		return UserRecord{}, dibs.Invalid(dibs.Fault{Field: "/user", Problem: dibs.BadID})
	}
	r, err := s.ledger.UserRecord(ctx, user)
	if err != nil {
		return UserRecord{}, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	r.Lists = []string{}
	for _, eraser := range s.erasers {
		lists, err := eraser.ListsOf(ctx, user)
		if err != nil {
			return UserRecord{}, dibs.AsUnavailable(err, dibs.EffectNone)
		}
		r.Lists = append(r.Lists, lists...)
	}
	e, err := s.ledger.ErasureOf(ctx, user)
	switch {
	case err == nil:
		v := e.View()
		r.Erasure = &v
	case !errors.Is(err, dibs.ErrNotFound):
		return UserRecord{}, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return *r, nil
}
