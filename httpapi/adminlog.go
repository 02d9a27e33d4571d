package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// AdminLog keeps what administrators did.
type AdminLog interface {
	// BeginAct adds an act that is about to happen, and sets its ID and At. When it fails,
	// the act must not happen.
	BeginAct(ctx context.Context, a *access.Act) error
	// EndAct adds the act's Status, Reason and After. When that fails, the act stays one
	// that has begun.
	EndAct(ctx context.Context, a *access.Act)
	// Acts lists acts, newest first.
	Acts(ctx context.Context, f access.ActFilter, page dibs.Page) (dibs.List[access.Act], error)
}

// adminLog writes the calls of administrators to the log.
type adminLog struct {
	log     AdminLog
	proxies *web.Proxies
	// subjects read, by the beginning of a path, the thing that calls on it are about.
	subjects map[string]readSubject
}

// readSubject returns a thing as administrators see it.
type readSubject func(ctx context.Context, id string) (any, error)

// maxTarget bounds what is kept of a target, in bytes.
const maxTarget = 512

// withLog runs an operation. When an administrator changes something by it, the log
// has the act before it happens, and the outcome after: an act that cannot be logged
// does not happen.
func withLog[O any](ctx context.Context, l *adminLog, c *call, op *operation, run func() (O, error)) (O, error) {
	if !c.caller.isAdmin() || op.method == http.MethodGet && !op.logged {
		return run()
	}
	act, err := l.begin(ctx, c, op)
	if err != nil {
		var none O
		return none, err
	}
	// A panic passes by: the act stays one that has begun.
	v, err := run()
	act.Status = op.successStatus()
	if c.code != 0 {
		act.Status = c.code
	}
	if err != nil {
		p := web.ProblemOf(err)
		act.Status, act.Reason = p.StatusCode(), p.Reason.String()
	} else if op.method != http.MethodDelete && op.method != http.MethodGet {
		act.After = forLog(v, op.hidesUser)
	}
	l.log.EndAct(ctx, act)
	return v, err
}

// begin adds an act to the log, with its subject as it is before.
func (l *adminLog) begin(ctx context.Context, c *call, op *operation) (*access.Act, error) {
	target := strings.ToValidUTF8(c.request.URL.Path, "?")
	if op.hidesUser {
		target = op.path
	}
	act := &access.Act{
		Key: c.caller.key, KeyName: c.caller.keyName, Role: c.caller.role, RequestID: c.id,
		Action: op.id, Target: target[:min(len(target), maxTarget)],
	}
	if at := l.proxies.Client(c.request); at.IsValid() {
		act.Address = at.String()
	}
	var err error
	if act.Before, err = l.before(ctx, op, c.request.PathValue("id")); err != nil {
		return nil, err
	}
	return act, l.log.BeginAct(ctx, act)
}

// before returns the subject of an operation as JSON; nil when it has none, or when
// there is no such thing.
func (l *adminLog) before(ctx context.Context, op *operation, id string) (json.RawMessage, error) {
	for path, read := range l.subjects {
		if op.path != path && !strings.HasPrefix(op.path, path+"/") {
			continue
		}
		v, err := read(ctx, id)
		switch {
		case errors.Is(err, dibs.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return forLog(v, false), nil
	}
	return nil, nil
}

// forLog returns a view as JSON without what only its owner may see: a secret, the
// codes and seats of a claim, and where asked for, the user. A view that cannot be
// shown as JSON is left out.
func forLog(v any, hidesUser bool) json.RawMessage {
	raw, err := web.EncodeJSON(v)
	if err != nil {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	before := len(members)
	delete(members, "secret")
	if _, claim := v.(api.ClaimView); claim {
		delete(members, "items")
	}
	if hidesUser {
		delete(members, "user_id")
	}
	if len(members) == before {
		return raw
	}
	if raw, err = web.EncodeJSON(members); err != nil {
		return nil
	}
	return raw
}

// actsInput filters the log.
type actsInput struct {
	PageQuery
	Key    string    `query:"key" maxLength:"191" doc:"those of this API key, by its id"`
	Action string    `query:"action" maxLength:"64" doc:"those of this operation, publish-campaign say"`
	Target string    `query:"target" maxLength:"512" doc:"those on this thing, /v1/campaigns/phone say"`
	Since  time.Time `query:"since" doc:"those from then on"`
	Until  time.Time `query:"until" doc:"those before then"`
}

// adminLogHandlers show the log.
type adminLogHandlers struct {
	*routes
	log AdminLog
}

func (h *adminLogHandlers) register() {
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/audit", id: "list-audit", tag: tagAccess, access: adminOnly, role: access.RoleAdmin, strictQuery: true,
		summary: "List what administrators did, newest first",
		description: "Each act with the key that did it, and the thing as it was before and after. An act is logged before it is done: " +
			"one with `status` 0 had begun when its process ended. Kept for 400 days.",
	}, func(ctx context.Context, _ *call, in *actsInput) (api.ListView[access.ActView], error) {
		return listOf((*access.Act).View)(h.log.Acts(ctx, access.ActFilter{Key: in.Key, Action: in.Action, Target: in.Target, Since: in.Since, Until: in.Until}, in.page()))
	})
}
