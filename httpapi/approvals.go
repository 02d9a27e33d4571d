package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/internal/web"
)

// Approvals keeps the acts that wait for a second person. *dibs.Error of NotFound for an id
// without one.
type Approvals interface {
	// Ask stores an act with its Action, Target, Call, AskedBy, AskedName, AskedPerson
	// and AskedRoots.
	Ask(ctx context.Context, a *access.Approval) error
	Approval(ctx context.Context, id string) (*access.Approval, error)
	// List lists approvals, newest first.
	List(ctx context.Context) ([]access.Approval, error)
	// Decide approves or rejects, once. *dibs.Error of Forbidden for the one who asked, of
	// InvalidState for what is decided or has expired.
	Decide(ctx context.Context, id string, by access.Decider, approve bool, why string) (*access.Approval, error)
	// Finish notes the status of the answer to an approved act.
	Finish(ctx context.Context, a *access.Approval, status int)
}

// secondPersons lets acts wait for a second person. acts is filled before the first request; nothing
// changes after.
type secondPersons struct {
	kept  Approvals
	rules access.ApprovalRules
	// acts do, by operation, what was approved.
	acts map[string]approvedAct
}

// approvedAct does a stored act in the name of the one who approved it, and returns the status
// of its answer.
type approvedAct func(ctx context.Context, c *call, stored *storedCall) (status int, err error)

// storedCall is an act as it waits: In is what its path and query say, Values are the values of
// its path, by name.
type storedCall struct {
	Path   string            `json:"path"`
	Values map[string]string `json:"values,omitempty"`
	In     json.RawMessage   `json:"in,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
}

// pendingView answers a call that waits for a second person. It names nothing that the call is
// about: the admin log has it.
type pendingView struct {
	ApprovalID string               `json:"approval_id"`
	State      access.ApprovalState `json:"state" enum:"pending"`
	ExpiresAt  time.Time            `json:"expires_at"`
}

// outcomeView says what came of a decision.
type outcomeView struct {
	ApprovalID string               `json:"approval_id"`
	State      access.ApprovalState `json:"state" enum:"rejected,done"`
	Status     int                  `json:"status,omitempty" doc:"of the answer to the act that was done"`
}

// second says when an operation needs a second person. need is nil for always.
type second struct {
	act  access.Act
	need func(ctx context.Context, id string, body any) (bool, error)
	// pin returns the body that is kept for the second person, so that what is approved cannot change until it is done;
	// nil for the one that was sent.
	pin func(ctx context.Context, id string, body any) (any, error)
}

// waits reports whether a call waits for a second person.
func (s *secondPersons) waits(ctx context.Context, c *call, op *operation, body any) (bool, error) {
	if op.second == nil || !s.rules.Acts[op.second.act] || !c.caller.isAdmin() {
		return false, nil
	}
	if op.second.need == nil {
		return true, nil
	}
	return op.second.need(ctx, c.request.PathValue("id"), body)
}

// refundBound is what may have gone back of a claim after a refund that no second person has approved, in minor units; 0
// for any sum.
func (s *secondPersons) refundBound(c *call) int64 {
	if c.approved || !s.rules.Acts[access.ActRefund] || s.rules.RefundsAbove == nil {
		return 0
	}
	return s.rules.RefundsAbove.Amount
}

// ask stores a call and answers 202 with the approval that it waits for. A repeat by
// Idempotency-Key asks for no second one.
func (a *routes) ask(ctx context.Context, c *call, op *operation, in, body, value any) (web.Answer, error) {
	waiting := *op
	waiting.status = http.StatusAccepted
	stored := storedCall{Path: c.request.URL.Path, Values: map[string]string{}}
	for _, name := range []string{"id", "user", "shard"} {
		if v := c.request.PathValue(name); v != "" {
			stored.Values[name] = v
		}
	}
	var err error
	if stored.In, err = json.Marshal(in); err != nil {
		return web.Answer{}, err
	}
	kept := value
	if op.second.pin != nil {
		if kept, err = op.second.pin(ctx, c.request.PathValue("id"), body); err != nil {
			return web.Answer{}, err
		}
	}
	if stored.Body, err = json.Marshal(kept); err != nil {
		return web.Answer{}, err
	}
	raw, err := json.Marshal(stored)
	if err != nil {
		return web.Answer{}, err
	}
	return a.once(ctx, c, &waiting, value, func(ctx context.Context) (any, error) {
		return withLog(ctx, a.acts, c, &waiting, func() (pendingView, error) {
			is := &access.Approval{Action: op.id, Target: targetOf(c, op), Call: raw, AskedBy: c.caller.key, AskedName: c.caller.keyName, AskedPerson: c.caller.person, AskedRoots: c.caller.origins}
			if err := a.seconds.kept.Ask(ctx, is); err != nil {
				return pendingView{}, err
			}
			return pendingView{is.ID, is.State, is.ExpiresAt}, nil
		})
	})
}

// replay notes how an operation is done once it was approved.
func replay[I, B, O any](a *routes, op *operation, decoder web.Decoder, run func(ctx context.Context, c *call, in *I, body *B) (O, error)) {
	a.seconds.acts[op.id] = func(ctx context.Context, c *call, stored *storedCall) (int, error) {
		in, body := new(I), new(B)
		if err := json.Unmarshal(stored.In, in); err != nil {
			return 0, err
		}
		value, err := decoder.Decode(stored.Body, body)
		if err == nil {
			err = readNulls(op, value, body)
		}
		if err != nil {
			return 0, err
		}
		_, err = withLog(ctx, a.acts, c, op, func() (O, error) { return run(ctx, c, in, body) })
		return op.successStatus(), err
	}
}

// approved does an approved act as a call of the one who approved it. Its key names it in the
// ledger, so that a step is made once.
func (a *routes) approved(ctx context.Context, c *call, is *access.Approval, raw json.RawMessage) (int, error) {
	var stored storedCall
	act := a.seconds.acts[is.Action]
	if err := json.Unmarshal(raw, &stored); err != nil || act == nil {
		return 0, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "this version of dibs cannot do the act", ZH: "当前版本无法执行该操作"})
	}
	does := &call{Recorder: web.Recorder{ResponseWriter: discarded{}}, id: c.id, zh: c.zh, caller: c.caller, approved: true}
	ctx = context.WithValue(ctx, callKey{}, does)
	does.request = c.request.Clone(ctx)
	does.request.URL.Path, does.request.URL.RawPath, does.request.URL.RawQuery = stored.Path, "", ""
	does.request.Header.Set(web.HeaderKey, is.ID)
	for name, value := range stored.Values {
		does.request.SetPathValue(name, value)
	}
	return act(ctx, does, &stored)
}

// discarded is the answer to an act that is done within another call.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) WriteHeader(int)             {}

// decision is the body of a decision.
type decision struct {
	Why string `json:"why,omitempty" doc:"for other administrators, at most 200 characters"`
}

// registerApprovals adds the routes that list what waits for a second person, and decide about it. No key with scopes
// may call them.
func registerApprovals(a *routes) {
	kept := a.seconds.kept
	view := func(is *access.Approval) access.ApprovalView { return is.View(a.now()) }
	list := accessOperation(http.MethodGet, "/v1/approvals", "list-approvals", "List acts that needed a second person, newest first", "Those of the last week.")
	list.strictQuery, list.personal = true, true
	register(a, list, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[access.ApprovalView], error) {
		return pageOf(in.PageQuery, func(is *access.Approval) string { return is.ID }, view)(kept.List(ctx))
	})
	get := accessOperation(http.MethodGet, "/v1/approvals/{id}", "get-approval", "Show an act that needs a second person", "With its path and body while it waits.")
	get.personal = true
	register(a, get, func(ctx context.Context, _ *call, in *PathID) (access.ApprovalView, error) {
		return viewOf(view)(kept.Approval(ctx, in.ID))
	})
	approve := accessOperation(http.MethodPost, "/v1/approvals/{id}/approve", "approve", "Approve an act, and do it",
		"By another key than the one that asked, of another name, that does not come from the same key or person. The act is done at once, in the name of the key that approves, and the answer says how. "+
			"The admin log has both. An approved act is not done again.")
	approve.example = `{"why":"checked with the bank"}`
	change(a, approve, func(ctx context.Context, c *call, in *PathID, d *decision) (outcomeView, error) {
		// The call is read first: the decision forgets it.
		asked, err := kept.Approval(ctx, in.ID)
		if err != nil {
			return outcomeView{}, err
		}
		is, err := kept.Decide(ctx, in.ID, deciderOf(c), true, d.Why)
		if err != nil {
			return outcomeView{}, err
		}
		status, err := a.approved(ctx, c, is, asked.Call)
		if err != nil {
			p := web.ProblemOf(err)
			kept.Finish(ctx, is, p.StatusCode())
			return outcomeView{}, err
		}
		kept.Finish(ctx, is, status)
		return outcomeView{is.ID, is.State, status}, nil
	})
	reject := accessOperation(http.MethodPost, "/v1/approvals/{id}/reject", "reject", "Reject an act", "The key that asked may do that too.")
	reject.example = `{"why":"twice the sum"}`
	change(a, reject, func(ctx context.Context, c *call, in *PathID, d *decision) (outcomeView, error) {
		is, err := kept.Decide(ctx, in.ID, deciderOf(c), false, d.Why)
		if err != nil {
			return outcomeView{}, err
		}
		return outcomeView{ApprovalID: is.ID, State: is.State}, nil
	})
}

// deciderOf is the caller of a call as one who decides.
func deciderOf(c *call) access.Decider {
	return access.Decider{Key: c.caller.key, Name: c.caller.keyName, Origins: c.caller.origins}
}

// refundNeedsSecond tells refunds that bring what went back of a claim above the bound: many
// small ones are one large one. The repeat of one that was made does not: the ledger knows it by
// its key, and a second person would make it again, under another one.
func refundNeedsSecond(find findClaim, above *dibs.Money) func(ctx context.Context, id string, body any) (bool, error) {
	if above == nil {
		return nil
	}
	return func(ctx context.Context, id string, body any) (bool, error) {
		claim, err := find(ctx, id)
		if err != nil {
			return false, err
		}
		ref, err := callOf(ctx).ref()
		if err != nil {
			return false, err
		}
		if ref != "" && slices.ContainsFunc(claim.Events, func(e dibs.ClaimEvent) bool { return e.Step == dibs.StepRefund && e.Ref == ref }) {
			return false, nil
		}
		spec, ok := body.(*dibs.RefundSpec)
		paid := claim.Paid()
		switch {
		case !ok:
			return true, nil
		case paid.Amount.Amount == 0:
			// No money can go back.
			return false, nil
		case paid.Amount.Currency != above.Currency:
			return true, nil
		}
		all := paid.Amount.Amount
		if spec.Amount != nil {
			all = paid.Refunded + spec.Amount.Amount
		}
		return all > above.Amount, nil
	}
}
