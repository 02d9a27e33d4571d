package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// AdminLog keeps what administrators did.
type AdminLog interface {
	// BeginAction adds an action that is about to happen, and sets its ID and At. When it
	// fails, the action must not happen.
	BeginAction(ctx context.Context, a *access.AdminAction) error
	// EndAction adds the action's Status, Reason and After. When that fails, the action
	// stays one that has begun.
	EndAction(ctx context.Context, a *access.AdminAction)
	// AdminActions lists actions, newest first.
	AdminActions(ctx context.Context, f access.AdminActionFilter, page dibs.Page) (dibs.List[access.AdminAction], error)
	// Chain lists the records of the chain over the log, oldest first.
	Chain(ctx context.Context, page dibs.Page) (dibs.List[access.ChainLink], error)
	// VerifyLog reads the whole chain, and says whether it is whole and goes through a record
	// that the caller knows, unless its N is 0.
	VerifyLog(ctx context.Context, known access.ChainPoint) (access.ChainReport, error)
}

// adminLog writes the calls of administrators to the log.
// It is safe for concurrent use: subjects is filled before the first request, and
// reads and refused lock themselves.
type adminLog struct {
	log     AdminLog
	proxies *web.Proxies
	// subjects read, by the beginning of a path, the thing that calls on it are about.
	subjects map[string]readSubject
	now      func() time.Time
	// reads are the reads of personal data, and refused the refused calls, that were
	// logged within the minute.
	reads, refused web.Recent
	// out receives what has no key to be logged under.
	out *slog.Logger
}

// readSubject returns a thing as administrators see it.
type readSubject func(ctx context.Context, id string) (any, error)

// maxTarget bounds what is kept of a target, in bytes.
// It is as long as the filter target of GET /v1/audit may be.
const maxTarget = 512

// withLog runs an operation. When an administrator changes something by it, the log
// has the act before it happens, and the outcome after: an act that cannot be logged
// does not happen.
//
// The order defends against a crash between the two: an act without an outcome may
// have happened, and one that happened is always in the log. An error before run
// means that nothing was done, and the call may be repeated.
func withLog[O any](ctx context.Context, l *adminLog, c *call, op *operation, run func() (O, error)) (v O, err error) {
	if !c.caller.isAdmin() || op.method == http.MethodGet && !op.logged && !op.personal {
		return run()
	}
	if op.personal {
		return withTrace(ctx, l, c, op, run)
	}
	act, err := l.begin(ctx, c, op)
	if err != nil {
		return v, err
	}
	c.act = act.ID
	// A panic passes by: the act stays one that has begun.
	v, err = run()
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
	l.log.EndAction(ctx, act)
	return v, err
}

// withTrace runs an operation that shows personal data. The log has that it was read
// before anything is shown, once a minute for the same key and the same thing; not what
// was shown. A record in which there is nothing, that of an erased user say, is traced
// without naming the user: the log would have the id for ever.
func withTrace[O any](ctx context.Context, l *adminLog, c *call, op *operation, run func() (O, error)) (O, error) {
	// A console reads the same page again and again; the log has it once a minute.
	read := c.caller.key + " " + op.id + " "
	target := targetOf(c, op)
	if l.reads.Has(read+target, l.now()) {
		return run()
	}
	act := l.act(c, op)
	v, err := run()
	act.Status = op.successStatus()
	if err != nil {
		p := web.ProblemOf(err)
		act.Status, act.Reason = p.StatusCode(), p.Reason.String()
	} else if of, ok := any(v).(interface{ Empty() bool }); ok && of.Empty() {
		// Entries that the record gets later are another read.
		target, act.Target = op.path, op.path
		if l.reads.Has(read+target, l.now()) {
			return v, err
		}
	}
	if failed := l.log.BeginAction(ctx, act); failed != nil {
		var none O
		return none, failed
	}
	l.reads.Note(read+target, l.now())
	return v, err
}

// begin adds an act to the log, with its subject as it is before.
// An error of reading the subject refuses the act: the log would not say what was
// changed.
func (l *adminLog) begin(ctx context.Context, c *call, op *operation) (*access.AdminAction, error) {
	act := l.act(c, op)
	var err error
	if act.Before, err = l.before(ctx, op, c.request.PathValue("id")); err != nil {
		return nil, err
	}
	return act, l.log.BeginAction(ctx, act)
}

// act is a call as the log has it.
func (l *adminLog) act(c *call, op *operation) *access.AdminAction {
	return &access.AdminAction{
		Key: c.caller.key, KeyName: c.caller.keyName, Role: c.caller.role, RequestID: c.id, Action: op.id, Target: targetOf(c, op),
		Address: web.AddressText(l.proxies.Client(c.request)),
	}
}

// targetOf is the address that a call is about. A path may have any character; encoded, it
// is one word of ASCII, and the same for every way to write it. A search of personal data
// has what it searched, too, but for payments and codes, which are secrets of their own.
func targetOf(c *call, op *operation) string {
	if op.hidesUser {
		return op.path
	}
	target := (&url.URL{Path: c.request.URL.Path}).EscapedPath()
	if op.personal {
		asked, searched := c.request.URL.Query(), url.Values{}
		for _, name := range []string{"user_id", "campaign_id", "product_id", "status", "refund_due", "order_type", "since", "until", "format"} {
			if v := asked.Get(name); v != "" {
				searched.Set(name, v)
			}
		}
		if len(searched) > 0 {
			target += "?" + searched.Encode()
		}
	}
	return target[:min(len(target), maxTarget)]
}

// maxRefusedTargets is how many things a minute the log has of one key's refused calls. Of more it has, by operation, that
// there were some: their target is the operation's path.
const maxRefusedTargets = 20

// refuse notes a call that was refused before it ran: under its key, once a minute for the
// same operation on the same thing, or in the program's log where no key is known. The refusal stands
// whether it can be noted or not.
// Once a minute, and not of any number of things: whoever tries keys must not fill the log.
func (l *adminLog) refuse(ctx context.Context, c *call, op *operation, refusal error) {
	p := web.ProblemOf(refusal)
	if p.Reason != dibs.Forbidden && p.Reason != dibs.Unauthenticated {
		return
	}
	if !c.caller.isAdmin() {
		act := l.act(c, op)
		if token, ok := web.Bearer(c.request.Header); ok && token != "" && !looksLikeUserToken(token) &&
			!l.refused.Has(act.Address, l.now()) && l.refused.Note(act.Address, l.now()) {
			l.out.WarnContext(ctx, "an unknown API key was refused", "address", act.Address, "action", op.id, "target", act.Target, "request_id", c.id)
		}
		return
	}
	act := l.act(c, op)
	call := c.caller.key + " " + op.id + " "
	if l.refused.Has(call+act.Target, l.now()) {
		return
	}
	if !l.refused.NoteIn(c.caller.key, call+act.Target, l.now(), maxRefusedTargets) {
		act.Target = op.path
		if l.refused.Has(call, l.now()) || !l.refused.Note(call, l.now()) {
			return
		}
	}
	if err := l.log.BeginAction(ctx, act); err != nil {
		l.out.ErrorContext(ctx, "a refused call of an administrator was not noted", "key", act.Key, "action", act.Action, "target", act.Target, "err", err)
		return
	}
	act.Status, act.Reason = p.StatusCode(), p.Reason.String()
	l.log.EndAction(ctx, act)
}

// before returns the subject of an operation as JSON; nil when it has none, or when
// there is no such thing.
// The paths of two subjects never contain one another, so the order of the map does
// not matter.
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
// A claim's items are codes that can be used by whoever reads them.
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
	Target string    `query:"target" maxLength:"512" doc:"those on this thing, /v1/campaigns/phone say, or on what is under it, such as /v1/campaigns/phone/publish"`
	Since  time.Time `query:"since" doc:"those from then on"`
	Until  time.Time `query:"until" doc:"those before then"`
}

// registerAdminLog adds the routes that show the log.
func registerAdminLog(a *routes, log AdminLog) {
	register(a, operation{
		method: http.MethodGet, path: "/v1/audit", id: "list-audit", tag: tagAccess, access: adminOnly, role: access.RoleAdmin, strictQuery: true,
		summary: "List what administrators did, newest first",
		description: "Each act with the key that did it, and the thing as it was before and after. An act is logged before it is done: " +
			"one with `status` 0 had begun when its process ended. Reads of users' data and refused calls are among them, once a minute for the same key and thing. " +
			"Kept for 400 days.",
	}, func(ctx context.Context, _ *call, in *actsInput) (api.ListView[access.AdminActionView], error) {
		return listOf((*access.AdminAction).View)(log.AdminActions(ctx, access.AdminActionFilter{Key: in.Key, Action: in.Action, Target: in.Target, Since: in.Since, Until: in.Until}, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/audit/chain", id: "list-audit-chain", tag: tagAccess, access: adminOnly, role: access.RoleAdmin, strictQuery: true,
		summary: "List the chain over the admin log, oldest first",
		description: "A record for each time that an entry was written. `hash` is the SHA-256 of `prev` and `record`, so that no record can be changed without all " +
			"that follow. Texts that an erasure may change are in `record` as digests: HMAC-SHA-256 under `salt`, which the erasure deletes.",
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[access.ChainLinkView], error) {
		return listOf((*access.ChainLink).View)(log.Chain(ctx, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/audit/verification", id: "verify-audit", tag: tagAccess, access: adminOnly, role: access.RoleAdmin, strictQuery: true, long: true,
		summary: "Say whether the admin log is whole",
		description: "Reads the whole chain and compares each entry with it. An administrator of the database could write a chain afresh: keep `last` and `head` " +
			"elsewhere, and give them as `known` the next time.",
	}, func(ctx context.Context, _ *call, in *chainInput) (access.ChainReport, error) {
		known, err := access.ReadChainPoint(in.Known)
		if err != nil {
			return access.ChainReport{}, err
		}
		return log.VerifyLog(ctx, known)
	})
}

// chainInput names a record that the caller knows.
type chainInput struct {
	Known string `query:"known" maxLength:"128" doc:"a record that the chain has to go through: its number, a colon, its hash"`
}
