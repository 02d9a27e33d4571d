package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
)

// Audit compares engine and ledger, and lists what admins did, for admins.
type Audit struct{ *caller }

// AdminLog lists what admins did, newest first.
func (c Audit) AdminLog(ctx context.Context, f access.AdminActionFilter, page dibs.Page) (api.ListView[access.AdminActionView], error) {
	v := pageQuery(page)
	for name, value := range map[string]string{"key": f.Key, "action": f.Action, "target": f.Target} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return list[access.AdminActionView](ctx, c.caller, "/v1/audit", v, c.opts.AdminKey)
}

// Chain lists the chain over the admin log, oldest first.
func (c Audit) Chain(ctx context.Context, page dibs.Page) (api.ListView[access.ChainLinkView], error) {
	return list[access.ChainLinkView](ctx, c.caller, "/v1/audit/chain", pageQuery(page), c.opts.AdminKey)
}

// VerifyLog says whether the admin log is whole, and goes through a record that the caller
// knows, unless its N is 0.
func (c Audit) VerifyLog(ctx context.Context, known access.ChainPoint) (r access.ChainReport, err error) {
	q := url.Values{}
	if known.N > 0 {
		q.Set("known", fmt.Sprintf("%d:%s", known.N, known.Hash))
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/audit/verification", query: q, token: c.opts.AdminKey}, &r)
	return r, err
}

// Verify compares engine and ledger; no ids mean all campaigns.
func (c Audit) Verify(ctx context.Context, campaignIDs ...string) (v audit.Report, err error) {
	q := url.Values{"campaign": campaignIDs}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/verify", query: q, token: c.opts.AdminKey}, &v)
	return v, err
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
