package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

const tagAccess = "Admin: access"

// actsInput says which acts are wanted.
type actsInput struct {
	PageQuery
	Key    string    `query:"key" maxLength:"191" doc:"those of this API key, by its id"`
	Action string    `query:"action" maxLength:"64" doc:"those of this operation, publish-campaign say"`
	Target string    `query:"target" maxLength:"512" doc:"those on this thing, /v1/campaigns/phone say"`
	Since  time.Time `query:"since" doc:"those from then on"`
	Until  time.Time `query:"until" doc:"those before then"`
}

func (a *api) registerAudit() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/audit", id: "list-audit", tag: tagAccess, access: adminOnly, role: dibs.RoleAdmin, strictQuery: true,
		summary: "List what administrators did, newest first",
		description: "Each act with who did it, and the thing as it was before and after. An act is noted before it is done: " +
			"one with `status` 0 had begun when its process ended. Kept for 400 days.",
	}, func(ctx context.Context, _ *call, in *actsInput) (dibs.ListView[dibs.ActView], error) {
		l, err := a.svc.Acts(ctx, dibs.ActFilter{Key: in.Key, Action: in.Action, Target: in.Target, Since: in.Since, Until: in.Until}, in.page())
		return listOf(l, (*dibs.Act).View), err
	})
}

// maxTarget bounds what is kept of a target and of an address.
const maxTarget = 512

// audited runs an operation; what an administrator changes by it is noted
// before, and its outcome after. An act that cannot be noted does not happen.
func audited[O any](ctx context.Context, a *api, c *call, op *operation, run func() (O, error)) (O, error) {
	if !c.who.isAdmin() || op.method == http.MethodGet && !op.noted {
		return run()
	}
	target := strings.ToValidUTF8(c.request.URL.Path, "?")
	if op.hidesUser {
		target = op.path
	}
	act := &dibs.Act{
		Key: c.who.key, KeyName: c.who.keyName, Role: c.who.role, Address: addressText(a.proxies.client(c.request)), RequestID: c.id,
		Action: op.id, Target: target[:min(len(target), maxTarget)],
	}
	subject := subjectOf(op.path)
	before, err := a.subject(ctx, subject, c.request)
	if err != nil {
		var none O
		return none, err
	}
	act.Before = before
	if err := a.svc.BeginAct(ctx, act); err != nil {
		var none O
		return none, err
	}
	// A panic is answered further up: the act stays one that has begun.
	v, err := run()
	act.Status = op.successStatus()
	if c.code != 0 {
		act.Status = c.code
	}
	if err != nil {
		p := a.silently(err)
		act.Status, act.Reason = p.statusCode(), p.reason.String()
	} else if op.method != http.MethodDelete && op.method != http.MethodGet {
		act.After = forAudit(v, op.hidesUser)
	}
	a.svc.EndAct(ctx, act)
	return v, err
}

// silently is the problem of an error, which somebody else logs.
func (a *api) silently(err error) problem {
	var p problem
	if errors.As(err, &p) {
		return p
	}
	return problemOf(err)
}

// subjects are the things that acts are about, by the paths that begin with
// theirs.
var subjects = []string{"/v1/campaigns/{id}", "/v1/products/{id}", "/v1/claims/{id}", "/v1/webhook-endpoints/{id}", "/v1/audiences/{id}", "/v1/announcements/{id}"}

func subjectOf(path string) string {
	for _, s := range subjects {
		if path == s || strings.HasPrefix(path, s+"/") {
			return s
		}
	}
	return ""
}

// subject reads the thing that a request is about, as JSON; nil when it names
// none, or one that there is not.
func (a *api) subject(ctx context.Context, kind string, r *http.Request) (json.RawMessage, error) {
	id := r.PathValue("id")
	var v any
	var err error
	switch kind {
	case subjects[0]:
		var c *dibs.Campaign
		if c, err = a.svc.CampaignNow(ctx, id); err == nil {
			v, err = a.svc.CampaignView(ctx, c, true)
		}
	case subjects[1]:
		var p *dibs.Product
		if p, err = a.svc.Product(ctx, id); err == nil {
			v = p.View(true)
		}
	case subjects[2]:
		var c *dibs.Claim
		if c, err = a.svc.FindClaim(ctx, id); err == nil {
			v = c.View()
		}
	case subjects[3]:
		var e *dibs.WebhookEndpoint
		if e, err = a.svc.Endpoint(ctx, id); err == nil {
			v = e.View()
		}
	case subjects[4]:
		var l *dibs.Audience
		if l, err = a.cfg.Audiences.Audience(ctx, id); err == nil {
			v = l.View()
		}
	case subjects[5]:
		v, err = a.svc.Announcement(ctx, id)
	default:
		return nil, nil
	}
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return forAudit(v, false), nil
}

// forAudit is a view as JSON, without what only its owner may see: a secret, the
// codes and seats of a claim, and where it is asked for, whose it is. A view that
// is no JSON is none.
func forAudit(v any, hidesUser bool) json.RawMessage {
	raw, err := encodeJSON(v)
	if err != nil {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	before := len(members)
	delete(members, "secret")
	if _, claim := v.(dibs.ClaimView); claim {
		delete(members, "items")
	}
	if hidesUser {
		delete(members, "user_id")
	}
	if len(members) == before {
		return raw
	}
	if raw, err = encodeJSON(members); err != nil {
		return nil
	}
	return raw
}
