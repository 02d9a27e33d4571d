package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// Approvals decides about acts that need a second person, for admins whose key has no scopes. A
// call that needs one, such as Accounts.Deposit, returns *Pending.
type Approvals struct{ *caller }

// Outcome says what came of a decision.
type Outcome struct {
	ApprovalID string               `json:"approval_id"`
	State      access.ApprovalState `json:"state"`
	// Status is that of the answer to the act, 0 for one that was rejected.
	Status int `json:"status"`
}

const approvalsPath = "/v1/approvals"

// List lists the approvals of the last week, newest first.
func (c Approvals) List(ctx context.Context, page dibs.Page) (api.ListView[access.ApprovalView], error) {
	return list[access.ApprovalView](ctx, c.caller, approvalsPath, pageQuery(page), c.opts.AdminKey)
}

// Get returns an approval.
func (c Approvals) Get(ctx context.Context, id string) (access.ApprovalView, error) {
	return admin[access.ApprovalView](ctx, c.caller, http.MethodGet, approvalsPath+"/"+url.PathEscape(id), "", nil)
}

// Approve approves an act and does it. The error is the act's own when it is refused.
func (c Approvals) Approve(ctx context.Context, id, why string) (Outcome, error) {
	return c.decide(ctx, id, "approve", why)
}

// Reject rejects an act.
func (c Approvals) Reject(ctx context.Context, id, why string) (Outcome, error) {
	return c.decide(ctx, id, "reject", why)
}

func (c Approvals) decide(ctx context.Context, id, how, why string) (Outcome, error) {
	body := map[string]string{}
	if why != "" {
		body["why"] = why
	}
	return admin[Outcome](ctx, c.caller, http.MethodPost, approvalsPath+"/"+url.PathEscape(id)+"/"+how, "", body)
}
