package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/httpapi/internal/signin"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/livestats"
	site "github.com/dibs-dev/dibs/web"
)

// SessionKeySize is the length of Config.SessionKey.
const SessionKeySize = sessions.KeySize

var errForeign = dibs.Fail(dibs.Forbidden, dibs.Text{EN: "another site's page may not do this", ZH: "其他站点的页面不能执行此操作"})

// LoginCodes exchange codes that are good once for the API keys that they stand for.
type LoginCodes interface {
	// Take returns the key of a code; false when the code is none, or was used.
	Take(code string) (key string, ok bool)
}

// sessionBody signs in by one of the two.
type sessionBody struct {
	Key  string `json:"key,omitempty" maxLength:"255" doc:"an API key"`
	Code string `json:"code,omitempty" maxLength:"255" doc:"a code that is good once, as dibs dev prints it"`
}

// sessionView is who is signed in.
type sessionView struct {
	KeyID     string      `json:"key_id"`
	Name      string      `json:"name" doc:"what the key is called"`
	Role      access.Role `json:"role" enum:"viewer,editor,publisher,admin"`
	CSRFToken string      `json:"csrf_token,omitempty" doc:"goes into the header Dibs-Csrf of what changes something; absent without a cookie"`
	// ExpiresAt is absent without a cookie.
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	Rehearsals bool       `json:"rehearsals" doc:"the server runs rehearsals"`
}

// endedView says that a session has ended.
type endedView struct {
	Ended bool `json:"ended"`
}

// sessionHandlers sign in to the console, and out.
// pauses locks itself; all else does not change while it serves.
type sessionHandlers struct {
	*routes
	keys  Keys
	kept  Sessions
	codes LoginCodes
	// pauses makes those wait who guess.
	pauses sessions.Pauses
	// door signs people in by an identity provider; nil without one.
	door *signin.Door
	// secure keeps cookies to HTTPS; rehearsals is what the console is told of them.
	secure, rehearsals bool
}

func (h *sessionHandlers) register() {
	about := operation{
		path: sessions.Path, tag: tagAccess, knowsRepeats: true,
		description: "The cookie is HttpOnly and SameSite=Strict, lasts twelve hours, and is worth nothing once the session is ended or the key revoked.",
	}
	in := about
	in.method, in.id, in.access, in.summary = http.MethodPost, "sign-in", open, "Sign in to the console: a key becomes a cookie"
	in.example, in.inside, in.counted, in.first = `{"key":"dibs_0123456789abcdef0123456789abcdef"}`, true, true, h.mayTry
	change(h.routes, in, func(ctx context.Context, c *call, _ *struct{}, body *sessionBody) (sessionView, error) {
		return h.signIn(ctx, c, body)
	})
	who := about
	who.method, who.id, who.access, who.summary = http.MethodGet, "session", adminOnly, "Show who is signed in"
	register(h.routes, who, func(_ context.Context, c *call, _ *struct{}) (sessionView, error) {
		is, _ := h.sessions.Of(c.request)
		return h.view(c.caller, is), nil
	})
	out := about
	out.method, out.id, out.access, out.role, out.summary = http.MethodDelete, "sign-out", adminOnly, access.RoleViewer, "Sign out of the console"
	register(h.routes, out, func(ctx context.Context, c *call, _ *struct{}) (endedView, error) {
		if err := h.end(ctx, c); err != nil {
			return endedView{}, err
		}
		http.SetCookie(c, h.sessions.CookieOf("", -1))
		return endedView{true}, nil
	})
	h.registerList()
	if h.door != nil {
		h.registerDoor()
	}
}

// end ends the session of a call. A key by itself has none, unless it is a person's: that is one session.
func (h *sessionHandlers) end(ctx context.Context, c *call) error {
	var ids []string
	if is, ok := h.sessions.Of(c.request); ok {
		ids = []string{is.ID}
	} else if c.caller.person != "" {
		all, err := h.kept.List(ctx, c.caller.key)
		if err != nil {
			return err
		}
		for i := range all {
			ids = append(ids, all[i].ID)
		}
	}
	for _, id := range ids {
		if err := h.kept.End(ctx, id); err != nil && !errors.Is(err, dibs.ErrNotFound) {
			return err
		}
	}
	return nil
}

// registerDoor adds the routes of signing in by an identity provider. Browsers come to the first two, which answer with
// pages and redirects.
func (h *sessionHandlers) registerDoor() {
	page := func(path, id, summary, description string, handle func(c *call, r *http.Request) error) {
		op := operation{method: http.MethodGet, path: path, id: id, tag: tagPages, access: open, status: http.StatusFound, summary: summary, description: description}
		h.describePlain(&op, web.TypeHTML[0])
		h.handleInside("GET "+path, func(_ http.ResponseWriter, r *http.Request) {
			c := callOf(r.Context())
			if err := handle(c, r); err != nil {
				h.fail(c, err)
			}
		})
	}
	page(signin.Path, "oidc-sign-in", "Sign in at the identity provider", "`to` is the page of the console to come back to.",
		func(c *call, r *http.Request) error { return h.door.Leave(c, r) })
	page(signin.CallbackPath, "oidc-callback", "Come back from the identity provider", "The provider sends browsers here. A command line's sign-in is answered with a page that asks first.",
		func(c *call, r *http.Request) error {
			in, err := h.door.Return(c, r, h.visit(c))
			if err != nil || in == nil {
				return err
			}
			if _, err := h.enter(c, in.Key, in.Secret, in.Session); err != nil {
				return err
			}
			signin.Redirect(c, in.To)
			return nil
		})
	change(h.routes, operation{
		method: http.MethodPost, path: signin.TokenPath, id: "oidc-token", tag: tagAccess, access: open, knowsRepeats: true, inside: true, counted: true, first: h.mayTry,
		summary: "Exchange the code of dibs login for a key", description: "The key is the person's, ends with the session, and is revoked with it. A code is good once.",
		example: `{"code":"…","verifier":"…"}`,
	}, func(ctx context.Context, c *call, _ *struct{}, body *signin.TokenBody) (signin.TokenView, error) {
		return h.door.Exchange(ctx, body, h.visit(c))
	})
}

// visit is what a call says of its sender.
func (h *sessionHandlers) visit(c *call) signin.Visit {
	return signin.Visit{From: h.proxies.Client(c.request), Agent: c.request.UserAgent(), RequestID: c.id, Chinese: c.zh}
}

// newDoor returns what signs people in; nil without an identity provider.
func newDoor(h *sessionHandlers, people signin.People, pages *site.Site) *signin.Door {
	if people == nil {
		return nil
	}
	return &signin.Door{
		People: people, Seals: h.sessions, Sessions: h.kept, Log: h.acts.log, Pauses: &h.pauses, Secure: h.secure, Now: h.now, Out: h.log,
		Page: func(w http.ResponseWriter, r *http.Request, address, name string, zh bool) error {
			body, err := pages.CommandLine(address, name, zh)
			if err == nil {
				pages.Send(w, r, body)
			}
			return err
		},
	}
}

// mayTry refuses who may not try to sign in, before the body is read: a page of another site, and for a while an
// address that guesses.
func (h *sessionHandlers) mayTry(c *call) error {
	c.Header()["Cache-Control"] = web.NoStore
	if h.sessions.Foreign(c.request) {
		return errForeign
	}
	return h.pauses.Check(h.proxies.Client(c.request), h.now())
}

// signIn exchanges a key, or a code for one, for a cookie; mayTry was asked before. A code is used up by its first use,
// also when the key behind it is not valid any more.
func (h *sessionHandlers) signIn(ctx context.Context, c *call, body *sessionBody) (sessionView, error) {
	at := h.proxies.Client(c.request)
	// Many may have begun to send their bodies before the first guess was judged.
	if err := h.pauses.Check(at, h.now()); err != nil {
		return sessionView{}, err
	}
	secret := body.Key
	if (body.Code == "") == (secret == "") {
		return sessionView{}, dibs.Invalid(dibs.Fault{Problem: dibs.Text{EN: "exactly one of key and code is required", ZH: "key 和 code 必须且只能提供一个"}})
	}
	if body.Code != "" {
		ok := false
		if h.codes != nil {
			secret, ok = h.codes.Take(body.Code)
		}
		if !ok {
			h.failed(ctx, c, at)
			return sessionView{}, access.ErrCodeUsed
		}
	}
	key, err := h.keys.CheckKey(ctx, secret)
	if errors.Is(err, dibs.ErrNotFound) {
		err = errBadToken
	}
	if web.ProblemOf(err).Reason == dibs.Unauthenticated {
		h.failed(ctx, c, at)
	}
	if err != nil {
		return sessionView{}, err
	}
	h.pauses.Succeed(at)
	address := web.AddressText(at)
	kept, err := h.kept.Begin(ctx, key, h.now().Add(sessions.Lasts), address, c.request.UserAgent())
	if err != nil {
		return sessionView{}, err
	}
	h.log.InfoContext(ctx, "an administrator signed in to the console", "key", key.ID, "name", key.Name, "session", kept.ID, "address", address, "request_id", c.id)
	return h.enter(c, key, secret, kept)
}

// failed notes a sign-in that failed. The pauses bound how often the log has it.
func (h *sessionHandlers) failed(ctx context.Context, c *call, at netip.Addr) {
	h.pauses.Fail(at, h.now())
	h.log.WarnContext(ctx, "a sign-in to the console failed", "address", at, "request_id", c.id)
}

// enter gives a browser the cookie of a session.
func (h *sessionHandlers) enter(c *call, key *access.APIKey, secret string, kept *access.Session) (sessionView, error) {
	value, is, err := h.sessions.Begin(kept.ID, secret, kept.ExpiresAt)
	if err != nil {
		return sessionView{}, err
	}
	http.SetCookie(c, h.sessions.CookieOf(value, max(1, int(kept.ExpiresAt.Sub(kept.CreatedAt).Seconds()))))
	return h.view(callerOf(key, h.now()), is), nil
}

func (h *sessionHandlers) view(who caller, is sessions.Session) sessionView {
	v := sessionView{KeyID: who.key, Name: who.keyName, Role: who.role, CSRFToken: is.CSRF, Rehearsals: h.rehearsals}
	if is.Until > 0 {
		at := time.Unix(is.Until, 0).UTC()
		v.ExpiresAt = &at
	}
	return v
}

// Meters measure campaigns while they run, as livestats.Meters do.
type Meters interface {
	Follow(ctx context.Context, id string, take func(livestats.Measure) error) error
}

// maxWatchers bounds the streams of measures, and those of rehearsals, on a node.
// Each stream reads numbers once a second; consoles are few, and a page that forgets
// its streams must not take the node's time.
const maxWatchers = 200

var errWatchers = faults.Busy(5*time.Second, dibs.Text{EN: "too many consoles watch at once", ZH: "同时观看的控制台过多"})

// streams are the answers that go on: measures of campaigns, and rehearsals.
// watchers is shared by both kinds of streams; nothing else changes while it serves.
type streams struct {
	*routes
	// stopping ends when the server stops; nil for never.
	stopping context.Context //nolint:containedctx // It is a signal, not a call's.
	watchers atomic.Int64
}

// registerMeasures adds the routes that stream the numbers of campaigns.
func registerMeasures(a *streams, campaigns Campaigns, meters Meters) {
	a.stream(operation{
		path: "/v1/campaigns/{id}/stats/stream", id: "stats-stream", tag: tagAdmin, summary: "Follow a campaign's numbers, once a second",
		description: "Server-sent events named `measure`: the stats, rates per second by reason, what engine, journal and ledger say was granted, " +
			"and latencies, all of them over all nodes. Refusals and latencies of the others are up to two seconds old.",
	}, func(ctx context.Context, c *call, id string) error {
		// Nothing is sent for a campaign that there is not.
		if _, err := campaigns.Get(ctx, id); err != nil {
			return err
		}
		s, err := newStream(c)
		if err != nil {
			return err
		}
		return meters.Follow(ctx, id, func(m livestats.Measure) error {
			m.Stats = m.Stats.In(c.zh)
			return s.send("measure", m)
		})
	})
}

// stream adds a GET whose answer goes on until the caller leaves, or the server stops.
func (a *streams) stream(op operation, run func(ctx context.Context, c *call, id string) error) {
	op.method, op.access = http.MethodGet, adminOnly
	op.description = op.describe()
	a.describePlain(&op, web.TypeEvents[0])
	a.handleInside("GET "+op.path, func(_ http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if err := a.enter(c, &op, adminOnly); err != nil {
			a.fail(c, err)
			return
		}
		// It is counted before it is compared: two that come at once cannot both take
		// the last place.
		if a.watchers.Add(1) > maxWatchers {
			a.watchers.Add(-1)
			a.fail(c, errWatchers)
			return
		}
		defer a.watchers.Add(-1)
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		if a.stopping != nil {
			defer context.AfterFunc(a.stopping, stop)()
		}
		go a.endWith(ctx, c, &op, stop)
		if err := run(ctx, c, r.PathValue("id")); err != nil && c.Status == 0 {
			a.fail(c, err)
		}
	})
}

// keyLook is how often the key of a stream is looked at again.
// A key that is revoked shows nothing for longer than that and what a node remembers
// of keys.
const keyLook = 5 * time.Second

// endWith ends a stream whose key, or session, is not valid any more.
// It ends with the stream: run's return stops ctx.
func (a *streams) endWith(ctx context.Context, c *call, op *operation, stop func()) {
	// A session may end before its key does.
	session := a.sessions.Speaking(c.request)
	for range wait.Every(ctx, keyLook) {
		_, err := a.auth.admit(c, adminOnly, op)
		if err == nil && session != "" {
			err = a.sessions.Check(ctx, session)
		}
		// While the ledger cannot tell, the stream goes on.
		if errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) {
			stop()
			return
		}
	}
}

// streamWrite is how long a client may take to accept an event.
const streamWrite = 10 * time.Second

// eventStream sends values as server-sent events to one client.
// It is one goroutine's. After an error nothing more can be sent.
type eventStream struct{ *web.EventStream }

// newStream begins a stream. An error means that nothing was sent.
func newStream(c *call) (eventStream, error) {
	s, err := web.NewEventStream(c, streamWrite)
	if err == nil {
		err = s.Send([]byte("retry: 2000\n\n"))
	}
	return eventStream{s}, err
}

// send sends a value as an event.
func (s eventStream) send(event string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Send([]byte("event: " + event + "\ndata: " + string(raw) + "\n\n"))
}

// Rehearsals run rushes on campaigns of their own, as lab/rushes does.
type Rehearsals interface {
	// Start begins one. *Error of InvalidState while another one runs, of InvalidRequest for what cannot be.
	Start(ctx context.Context, req RehearsalRequest) (RehearsalView, error)
	// Find returns one, and a channel that is closed when there is more to say. *Error of NotFound.
	Find(id string) (RehearsalView, <-chan struct{}, error)
}

// RehearsalRequest says what a rehearsal is to be; what is absent takes its default.
type RehearsalRequest struct {
	Users    int       `json:"users,omitempty" minimum:"1" maximum:"20000" doc:"how many users press, default 2000"`
	Requests int       `json:"requests,omitempty" minimum:"1" maximum:"50000" doc:"how many requests they send, default 5000"`
	Stock    int64     `json:"stock,omitempty" minimum:"1" maximum:"1000000" doc:"units of the campaign, codes of the coupon, or shares of the red packet, default 200"`
	Kind     dibs.Kind `json:"kind,omitempty" enum:"sale,coupon,redpacket" doc:"what is rushed for, default sale; a coupon has a code for each unit"`
	Through  string    `json:"through,omitempty" enum:"http,ws" doc:"how requests go, default http; ws is over a WebSocket of each user"`
}

// RehearsalState is how a rehearsal stands.
type RehearsalState string

// The states of a rehearsal.
const (
	RehearsalRunning RehearsalState = "running"
	RehearsalDone    RehearsalState = "done"
	// RehearsalFailed is one that could not begin, or go on.
	RehearsalFailed RehearsalState = "failed"
)

// RehearsalView is a rehearsal as shown.
type RehearsalView struct {
	ID         string           `json:"id"`
	State      RehearsalState   `json:"state" enum:"running,done,failed"`
	Request    RehearsalRequest `json:"request"`
	StartedAt  time.Time        `json:"started_at"`
	EndedAt    *time.Time       `json:"ended_at,omitempty"`
	CampaignID string           `json:"campaign_id,omitempty" doc:"the campaign that was made for it"`
	// Phase, and how far it is, while it runs.
	Phase string `json:"phase,omitempty" doc:"connecting, pressing, repeating, reading or crediting"`
	Did   int64  `json:"done" doc:"how much of the phase is done"`
	Total int64  `json:"total" doc:"how much there is of the phase"`
	// Promises are those that could be judged by now.
	Promises []RehearsalVerdict `json:"promises"`
	// Report is there in the end, and Error says why there is none.
	Report json.RawMessage `json:"report,omitempty" doc:"what dibs rehearse --output json prints"`
	Error  string          `json:"error,omitempty"`
	// ReportZH and ErrorZH are the same in Chinese.
	ReportZH json.RawMessage `json:"-"`
	ErrorZH  string          `json:"-"`
}

// in returns the view in one language.
func (v RehearsalView) in(zh bool) RehearsalView {
	if !zh {
		return v
	}
	v.Error = cmp.Or(v.ErrorZH, v.Error)
	if v.ReportZH != nil {
		v.Report = v.ReportZH
	}
	v.Promises = slices.Clone(v.Promises)
	for i := range v.Promises {
		p := &v.Promises[i]
		p.Detail = cmp.Or(p.DetailZH, p.Detail)
	}
	return v
}

// RehearsalVerdict is how a promise came out.
type RehearsalVerdict struct {
	Promise string `json:"promise"`
	Finding string `json:"finding" enum:"held,broken,could not be judged"`
	Witness string `json:"witness" doc:"answers, by what the clients were told, or server, by its own comparison"`
	Detail  string `json:"detail"`
	// DetailZH is Detail in Chinese.
	DetailZH string `json:"-"`
}

// rehearsalHandlers run rushes, where they are allowed.
type rehearsalHandlers struct {
	*streams
	rehearsals Rehearsals
}

func (h *rehearsalHandlers) register() {
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/rehearsals", id: "start-rehearsal", tag: tagOps, access: adminOnly, role: access.RoleAdmin, status: http.StatusCreated,
		summary: "Simulate a rush, and check every promise", example: `{"users":2000,"requests":5000,"stock":200}`,
		description: "On a campaign of its own, over real connections, one at a time. On in `dibs dev`; `dibs serve` needs --allow-rehearsals, " +
			"since the load takes what the machine has.",
	}, func(ctx context.Context, c *call, _ *struct{}, req *RehearsalRequest) (RehearsalView, error) {
		v, err := h.rehearsals.Start(ctx, *req)
		return v.in(c.zh), c.located("/v1/rehearsals/", v.ID, err)
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/rehearsals/{id}", id: "get-rehearsal", tag: tagOps, access: adminOnly,
		summary: "Show how a rehearsal goes", description: "The last twenty are remembered until the server stops.",
	}, func(_ context.Context, c *call, in *PathID) (RehearsalView, error) {
		v, _, err := h.rehearsals.Find(in.ID)
		return v.in(c.zh), err
	})
	h.stream(operation{
		path: "/v1/rehearsals/{id}/stream", id: "rehearsal-stream", tag: tagOps, summary: "Follow a rehearsal",
		description: "Server-sent events named `rehearsal`, each the whole of what `GET /v1/rehearsals/{id}` shows, until it has ended.",
	}, h.follow)
}

// follow sends a rehearsal each time that it has changed.
func (h *rehearsalHandlers) follow(ctx context.Context, c *call, id string) error {
	// The channel is of this state: a change in between has closed it already.
	v, changed, err := h.rehearsals.Find(id)
	if err != nil {
		return err
	}
	s, err := newStream(c)
	if err != nil {
		return err
	}
	for {
		if err := s.send("rehearsal", v.in(c.zh)); err != nil || v.State != RehearsalRunning {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
		if v, changed, err = h.rehearsals.Find(id); err != nil {
			return err
		}
	}
}
