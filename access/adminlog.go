package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/batch"
)

// Act is something that an administrator did, as the audit log keeps it.
type Act struct {
	// ID orders acts by time.
	ID string
	At time.Time
	// Key is the id of the API key, or who used the command line on the ledger
	// itself; KeyName and Role are what the key was called and could do.
	Key, KeyName string
	Role         Role
	// Address is where the request came from, RequestID its id in the logs.
	Address, RequestID string
	// Action is the operation, `publish-campaign`; Target is what it was about,
	// `/v1/campaigns/phone`.
	Action, Target string
	// Status is that of the answer, 0 while there is none: the act has begun, and
	// the process may have ended in the middle of it. Reason is a refusal's.
	Status int
	Reason string
	// Before and After are the thing as JSON, before the act and after it; nil where
	// there is none.
	Before, After json.RawMessage
}

// MaxActBody is the most bytes of Before and After each; longer ones are kept
// as their length.
const MaxActBody = 64 << 10

// ActFilter says which acts to look for. Zero fields do not filter.
type ActFilter struct {
	Key, Action, Target string
	// Since ≤ at < Until.
	Since, Until time.Time
}

// ActView is an act as shown.
type ActView struct {
	ID        string          `json:"id"`
	At        time.Time       `json:"at"`
	Key       string          `json:"key" doc:"the API key's id; cli: and a name for the command line"`
	KeyName   string          `json:"key_name"`
	Role      Role            `json:"role"`
	Address   string          `json:"address"`
	RequestID string          `json:"request_id"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Status    int             `json:"status" doc:"of the answer; 0: begun, and nothing is known of its end"`
	Reason    string          `json:"reason,omitempty" doc:"why it was refused"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
}

// View returns the act as shown.
func (a *Act) View() ActView {
	return ActView{
		ID: a.ID, At: a.At, Key: a.Key, KeyName: a.KeyName, Role: a.Role, Address: a.Address, RequestID: a.RequestID,
		Action: a.Action, Target: a.Target, Status: a.Status, Reason: a.Reason, Before: a.Before, After: a.After,
	}
}

// NewActID returns an id for an act at a time. Ids of one process are in the order
// in which they were made, also within a millisecond.
func NewActID(at time.Time) string {
	return dibs.NewID(fmt.Sprintf("a-%012x-%04x", at.UnixMilli(), uint16(actsMade.Add(1))))
}

var actsMade atomic.Uint32

// actKeep is how long acts are kept.
const actKeep = 400 * 24 * time.Hour

// savedAct is an act on its way to the ledger, and what became of that.
type savedAct struct {
	act *Act
	err error
}

// maxActs is the most acts in one transaction.
const maxActs = 64

// BeginAct notes what an administrator is about to do, before it is done: an
// act that cannot be noted must not happen. It sets the act's ID and At.
func (s *Access) BeginAct(ctx context.Context, a *Act) error {
	a.At = dibs.Ms(s.now())
	a.ID = NewActID(a.At)
	a.Before = boundedBody(a.Before)
	if err := s.saveAct(ctx, *a); err != nil {
		// Whether it was noted or not, the act does not happen.
		var e *dibs.Error
		if errors.As(err, &e) && e.Reason != dibs.Unavailable {
			return err
		}
		return dibs.Unavail(dibs.EffectNone, err)
	}
	return nil
}

// EndAct notes what became of an act: its Status, Reason and After. When that
// fails, operators hear of it, and the act stays one that has begun.
func (s *Access) EndAct(ctx context.Context, a *Act) {
	a.After = boundedBody(a.After)
	// Whoever asked may be gone: what happened has happened.
	if err := s.saveAct(context.WithoutCancel(ctx), *a); err != nil {
		s.log.Error("the end of an admin's action was not noted", "act", a.ID, "action", a.Action, "target", a.Target, "status", a.Status, "err", err)
	}
}

// boundedBody keeps a body, or its length when it is too long.
func boundedBody(body json.RawMessage) json.RawMessage {
	if len(body) <= MaxActBody {
		return body
	}
	return fmt.Appendf(nil, `{"too_long":%d}`, len(body))
}

// saveAct saves an act together with those that others save meanwhile.
func (s *Access) saveAct(ctx context.Context, a Act) error {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	w := &savedAct{act: &a}
	if err := s.acts.Do(ctx, w, maxActs, s.saveActBatch); err != nil {
		return err
	}
	return w.err
}

// saveActBatch saves acts in one transaction, or each in its own when one of
// them spoils that.
func (s *Access) saveActBatch(saved []*savedAct) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), batch.Patience)
	defer cancel()
	acts := make([]*Act, len(saved))
	for i, w := range saved {
		acts[i] = w.act
	}
	err := s.ledger.SaveActs(ctx, acts)
	if err != nil && len(saved) > 1 && !errors.Is(err, dibs.ErrUnavailable) {
		for i := range saved {
			s.saveActBatch(saved[i : i+1])
		}
		return
	}
	for _, w := range saved {
		w.err = err
	}
}

// Acts lists what administrators did, newest first.
func (s *Access) Acts(ctx context.Context, f ActFilter, page dibs.Page) (dibs.List[Act], error) {
	return s.ledger.Acts(ctx, f, page)
}

// forgetActs drops acts that are old enough.
func (s *Access) forgetActs(ctx context.Context) {
	if err := s.ledger.DropActs(ctx, s.now().Add(-actKeep)); err != nil && ctx.Err() == nil {
		s.log.Warn("forgetting old acts failed", "err", err)
	}
}
