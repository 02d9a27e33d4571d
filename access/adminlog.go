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

// AdminAction is something that an administrator did, as the audit log keeps it.
type AdminAction struct {
	// ID orders actions by time.
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
	// Status is that of the answer, 0 while there is none: the action has begun, and
	// the process may have ended in the middle of it. Reason is a refusal's.
	Status int
	Reason string
	// Before and After are the thing as JSON, before the action and after it; nil where
	// there is none.
	Before, After json.RawMessage
}

// MaxActionBody is the most bytes of Before and After each; longer ones are kept
// as their length.
const MaxActionBody = 64 << 10

// AdminActionFilter says which actions to look for. Zero fields do not filter.
type AdminActionFilter struct {
	// Target is a path: what was about it, or about what is under it, is found.
	Key, Action, Target string
	// Since ≤ at < Until.
	Since, Until time.Time
}

// AdminActionView is an action as shown.
type AdminActionView struct {
	ID        string          `json:"id"`
	At        time.Time       `json:"at"`
	Key       string          `json:"key" doc:"the API key's id; cli: and a name for the command line, oidc: and a name for a sign-in at the identity provider"`
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

// View returns the action as shown.
func (a *AdminAction) View() AdminActionView { return AdminActionView(*a) }

// NewAdminActionID returns an id for an action at a time. Ids of one process are in the order
// in which they were made, also within a millisecond.
func NewAdminActionID(at time.Time) string {
	return dibs.NewID(fmt.Sprintf("a-%012x-%04x", at.UnixMilli(), uint16(actionsMade.Add(1))))
}

var actionsMade atomic.Uint32

// actionKeep is how long actions are kept.
const actionKeep = 400 * 24 * time.Hour

// savedAction is an action on its way to the ledger, and what became of that.
type savedAction struct {
	action *AdminAction
	err    error
}

// maxSavedActions is the most actions in one transaction.
const maxSavedActions = 64

// BeginAction notes what an administrator is about to do, before it is done: an
// action that cannot be noted must not happen. It sets the action's ID and At.
func (s *Access) BeginAction(ctx context.Context, a *AdminAction) error {
	a.At = dibs.Ms(s.now())
	a.ID = NewAdminActionID(a.At)
	a.Before = boundedBody(a.Before)
	if err := s.saveAction(ctx, *a); err != nil {
		// Whether it was noted or not, the action does not happen.
		var e *dibs.Error
		if errors.As(err, &e) && e.Reason != dibs.Unavailable {
			return err
		}
		return dibs.Unavail(dibs.EffectNone, err)
	}
	return nil
}

// EndAction notes what became of an action: its Status, Reason and After. When that
// fails, the failure is logged, and the action stays one that has begun.
func (s *Access) EndAction(ctx context.Context, a *AdminAction) {
	a.After = boundedBody(a.After)
	// The request may have ended: what happened is noted all the same.
	if err := s.saveAction(context.WithoutCancel(ctx), *a); err != nil {
		s.log.Error("the end of an admin's action was not noted", "id", a.ID, "action", a.Action, "target", a.Target, "status", a.Status, "err", err)
	}
}

// boundedBody keeps a body, or its length when it is too long.
func boundedBody(body json.RawMessage) json.RawMessage {
	if len(body) <= MaxActionBody {
		return body
	}
	return fmt.Appendf(nil, `{"too_long":%d}`, len(body))
}

// saveAction saves an action together with those that others save meanwhile.
func (s *Access) saveAction(ctx context.Context, a AdminAction) error {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	w := &savedAction{action: &a}
	if err := s.actions.Do(ctx, w, maxSavedActions, s.saveActionBatch); err != nil {
		return err
	}
	return w.err
}

// saveActionBatch saves actions in one transaction, or each in its own when one of
// them spoils that.
func (s *Access) saveActionBatch(saved []*savedAction) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), batch.Patience)
	defer cancel()
	actions := make([]*AdminAction, len(saved))
	for i, w := range saved {
		actions[i] = w.action
	}
	err := s.ledger.SaveAdminActions(ctx, actions)
	if err != nil && len(saved) > 1 && !errors.Is(err, dibs.ErrUnavailable) {
		for i := range saved {
			s.saveActionBatch(saved[i : i+1])
		}
		return
	}
	for _, w := range saved {
		w.err = err
	}
}

// AdminActions lists what administrators did, newest first.
func (s *Access) AdminActions(ctx context.Context, f AdminActionFilter, page dibs.Page) (dibs.List[AdminAction], error) {
	return s.ledger.AdminActions(ctx, f, page)
}
