package access

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// Act is a kind of act that may need a second person.
type Act string

const (
	// ActDeposit is money that comes in from outside.
	ActDeposit Act = "deposits"
	// ActRefund is money that goes back.
	ActRefund Act = "refunds"
	// ActErasure is the erasure of a user.
	ActErasure Act = "erasure"
	// ActPublicValue is the value that a lottery draws by.
	ActPublicValue Act = "public-value"
	// ActRedPacket gives money to the fastest users: a red packet is published, or a published one is opened to others.
	ActRedPacket Act = "red-packets"
	// ActAbandon gives up a shard, with the claims on it that were not settled.
	ActAbandon Act = "abandon-shard"
)

// ApprovalRules say which acts need a second person.
type ApprovalRules struct {
	Acts map[Act]bool
	// RefundsAbove is what may be refunded of a claim without one, in all; nil for nothing.
	RefundsAbove *dibs.Money
}

// ApprovalState says how far an approval is.
type ApprovalState string

const (
	// ApprovalPending waits for a second person, until ExpiresAt.
	ApprovalPending ApprovalState = "pending"
	// ApprovalApproved is being done: when it stays so, the process ended in the middle of it,
	// and the admin log says what is known.
	ApprovalApproved ApprovalState = "approved"
	// ApprovalRejected is not done.
	ApprovalRejected ApprovalState = "rejected"
	// ApprovalDone was done.
	ApprovalDone ApprovalState = "done"
	// ApprovalFailed was refused when it was to be done; Status says how.
	ApprovalFailed ApprovalState = "failed"
)

// Approval is an act of an administrator that another one has to approve.
type Approval struct {
	ID string
	// Action is the operation, Target what it is about as the admin log names it.
	Action, Target string
	// Call is what will be done; empty once it is decided, since it may name a user.
	Call  json.RawMessage
	State ApprovalState
	// AskedBy is the key that asked, AskedName what it is called. The same for DecidedBy.
	AskedBy, AskedName string
	// AskedPerson is the subject of a person who asked; empty for a key that was made.
	AskedPerson string
	// AskedRoots are the origins of the key that asked; nil for one of before keys had origins.
	AskedRoots             []string
	AskedAt, ExpiresAt     time.Time
	DecidedBy, DecidedName string
	DecidedAt              time.Time
	Why                    string
	// Status is that of the answer to the act, 0 before.
	Status int
}

// How long an approval waits, how long it is kept after it was asked for, and how many may
// wait at a time.
const (
	approveWithin = 24 * time.Hour
	keepApprovals = 7 * 24 * time.Hour
	maxApprovals  = 1000
	maxApproveWhy = 200
)

// ApprovalView is an approval as shown.
type ApprovalView struct {
	ID          string          `json:"id"`
	Action      string          `json:"action" doc:"the operation, as in the admin log"`
	Target      string          `json:"target"`
	Call        json.RawMessage `json:"call,omitempty" doc:"what will be done: path and body; absent once it is decided"`
	State       ApprovalState   `json:"state" enum:"pending,approved,rejected,done,failed,expired" doc:"approved: it is being done, or its process ended in the middle of it"`
	AskedBy     string          `json:"asked_by" doc:"the key that asked"`
	AskedName   string          `json:"asked_name"`
	AskedAt     time.Time       `json:"asked_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	DecidedBy   string          `json:"decided_by,omitempty"`
	DecidedName string          `json:"decided_name,omitempty"`
	DecidedAt   *time.Time      `json:"decided_at,omitempty"`
	Why         string          `json:"why,omitempty"`
	Status      int             `json:"status,omitempty" doc:"of the answer to the act"`
}

// View returns the approval as shown at a time.
func (a *Approval) View(now time.Time) ApprovalView {
	v := ApprovalView{
		ID: a.ID, Action: a.Action, Target: a.Target, Call: a.Call, State: a.State, AskedBy: a.AskedBy, AskedName: a.AskedName, AskedAt: a.AskedAt,
		ExpiresAt: a.ExpiresAt, DecidedBy: a.DecidedBy, DecidedName: a.DecidedName, DecidedAt: givenTime(&a.DecidedAt), Why: a.Why, Status: a.Status,
	}
	if a.State == ApprovalPending && !now.Before(a.ExpiresAt) {
		v.State, v.Call = "expired", nil
	}
	return v
}

// ApprovalLedger keeps approvals.
type ApprovalLedger interface {
	// InsertApproval stores one, unless most are there that wait at its time; then it returns
	// false.
	InsertApproval(ctx context.Context, a *Approval, most int) (bool, error)
	// Approval returns one. ErrNotFound.
	Approval(ctx context.Context, id string) (*Approval, error)
	// Approvals lists all, newest first.
	Approvals(ctx context.Context) ([]Approval, error)
	// DecideApproval stores State and what was decided of one that is pending and has not
	// expired at DecidedAt, and forgets its Call; false for any other.
	DecideApproval(ctx context.Context, a *Approval) (bool, error)
	// FinishApproval stores State and Status of one that was approved.
	FinishApproval(ctx context.Context, a *Approval) error
	// DropApprovals forgets those asked for before a time.
	DropApprovals(ctx context.Context, before time.Time) error
}

// Approvals are the acts that wait for a second person.
type Approvals struct {
	ledger ApprovalLedger
	log    *slog.Logger
	now    func() time.Time
}

// NewApprovals returns those of a ledger.
func NewApprovals(ledger ApprovalLedger, log *slog.Logger, now func() time.Time) *Approvals {
	return &Approvals{ledger: ledger, log: log, now: now}
}

// Decider is the key that decides about an approval, with its name and its origins.
type Decider struct {
	Key, Name string
	Origins   []string
}

// isAsker reports whether a decider may be the administrator who asked: with the same key, one of the same name, since a
// rotated key keeps its name, or one that has an origin in common with it, however many keys are between them.
func (a *Approval) isAsker(by Decider) bool {
	return a.AskedBy == by.Key || a.AskedName == by.Name || slices.ContainsFunc(by.Origins, func(one string) bool {
		return one == a.AskedBy || one == a.AskedPerson || slices.Contains(a.AskedRoots, one)
	})
}

var (
	errOwnApproval = dibs.Fail(dibs.Forbidden, dibs.Text{
		EN: "another administrator has to decide this, with a key of another name that neither of you has made from the same one",
		ZH: "必须由另一位管理员使用名称不同、且与申请人密钥来源不同的密钥来决定",
	})
	errDecided     = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "this was decided before, or has expired", ZH: "该审批已处理或已过期"})
	errManyPending = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "too many acts wait for approval", ZH: "等待审批的操作过多"})
)

// Ask stores an act that has to be approved, with its Action, Target, Call, AskedBy, AskedName,
// AskedPerson and AskedRoots, and sets the rest.
func (s *Approvals) Ask(ctx context.Context, a *Approval) error {
	a.ID, a.State, a.AskedAt = dibs.NewID("ap-"), ApprovalPending, dibs.Ms(s.now())
	a.ExpiresAt = a.AskedAt.Add(approveWithin)
	ok, err := s.ledger.InsertApproval(ctx, a, maxApprovals)
	return orRefusal(ok, err, errManyPending)
}

// Approval returns one. ErrNotFound.
func (s *Approvals) Approval(ctx context.Context, id string) (*Approval, error) {
	return s.ledger.Approval(ctx, id)
}

// List lists approvals, newest first: those of the last week.
func (s *Approvals) List(ctx context.Context) ([]Approval, error) { return s.ledger.Approvals(ctx) }

// Decide approves or rejects. It returns the approval as it was asked for, Call included. Of two
// who decide at the same time, one does. *Error of Forbidden for the key that asked, and for
// one of the same name or of a common origin, as isAsker says; of InvalidState for what is
// decided or has expired.
func (s *Approvals) Decide(ctx context.Context, id string, by Decider, approve bool, why string) (*Approval, error) {
	if fs := dibs.TextFault("/why", why, false, maxApproveWhy); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	a, err := s.ledger.Approval(ctx, id)
	if err != nil {
		return nil, err
	}
	// The person who asked may take it back.
	if approve && a.isAsker(by) {
		return nil, errOwnApproval
	}
	decided := *a
	decided.State, decided.DecidedBy, decided.DecidedName, decided.DecidedAt, decided.Why = ApprovalRejected, by.Key, by.Name, dibs.Ms(s.now()), why
	if approve {
		decided.State = ApprovalApproved
	}
	ok, err := s.ledger.DecideApproval(ctx, &decided)
	return &decided, orRefusal(ok, err, errDecided)
}

// Finish notes what came of an approved act.
func (s *Approvals) Finish(ctx context.Context, a *Approval, status int) {
	a.State, a.Status = ApprovalDone, status
	if status >= 400 {
		a.State = ApprovalFailed
	}
	// The request may have ended: what happened is noted all the same.
	if err := s.ledger.FinishApproval(context.WithoutCancel(ctx), a); err != nil {
		s.log.Error("what came of an approved act was not noted", "id", a.ID, "action", a.Action, "status", status, "err", err)
	}
}

// Tidy forgets approvals that are old enough.
func (s *Approvals) Tidy(ctx context.Context) {
	logFailure(ctx, s.log, "forgetting old approvals failed", s.ledger.DropApprovals(ctx, s.now().Add(-keepApprovals)))
}
