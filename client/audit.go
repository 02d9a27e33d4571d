package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// Audit compares engine and ledger, and lists what admins did, for admins.
type Audit struct{ *caller }

// AdminLog lists what admins did, newest first.
func (c Audit) AdminLog(ctx context.Context, f access.AdminActionFilter, page dibs.Page) (api.ListView[access.AdminActionView], error) {
	v := pageQuery(page, "key", f.Key, "action", f.Action, "target", f.Target, "since", timeText(f.Since), "until", timeText(f.Until))
	return list[access.AdminActionView](ctx, c.caller, "/v1/audit", v, c.opts.AdminKey)
}

// Chain lists the chain over the admin log, oldest first.
func (c Audit) Chain(ctx context.Context, page dibs.Page) (api.ListView[access.ChainLinkView], error) {
	return list[access.ChainLinkView](ctx, c.caller, "/v1/audit/chain", pageQuery(page), c.opts.AdminKey)
}

// VerifyLog says whether the admin log is whole, and goes through a record that the caller
// knows, unless its N is 0.
func (c Audit) VerifyLog(ctx context.Context, known access.ChainPoint) (access.ChainReport, error) {
	q := url.Values{}
	if known.N > 0 {
		q.Set("known", fmt.Sprintf("%d:%s", known.N, known.Hash))
	}
	return get[access.ChainReport](ctx, c.caller, "/v1/audit/verification", q, c.opts.AdminKey)
}

// Verify compares engine and ledger; no ids mean all campaigns.
func (c Audit) Verify(ctx context.Context, campaignIDs ...string) (audit.Report, error) {
	return get[audit.Report](ctx, c.caller, "/v1/verify", url.Values{"campaign": campaignIDs}, c.opts.AdminKey)
}

// Repair compares engine and ledger, puts right what can be, and compares again.
func (c Audit) Repair(ctx context.Context, req audit.RepairRequest) (audit.RepairReport, error) {
	body := struct {
		Repair      bool              `json:"repair"`
		Campaigns   []string          `json:"campaigns,omitempty"`
		OlderLedger audit.OlderLedger `json:"older_ledger,omitempty"`
	}{true, req.Campaigns, req.OlderLedger}
	return admin[audit.RepairReport](ctx, c.caller, http.MethodPost, "/v1/verify", "", body)
}
