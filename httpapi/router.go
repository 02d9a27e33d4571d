package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi/internal/sessions"
	"github.com/dibs-dev/dibs/internal/web"
)

// router is the mux of the admins' listener, with what all routes have in common
// around each: request ids, headers, metrics, and answers to panics. Routes are
// added before the first request; after that it does not change.
//
// The two muxes have the same patterns: a route for admins is in the outer one too, and
// answers 404 there.
type router struct {
	*http.ServeMux
	// outer is the mux of the listener for users, where routes for admins answer 404.
	outer   *http.ServeMux
	respond *web.Responder
	metrics *metrics
	log     *slog.Logger
	// sessions turn the console's cookies into keys, on the admins' listener.
	sessions *sessions.Sessions
	// unproved are the sessions of which a change without their token was logged within the minute.
	unproved web.Recent
	proxies  *web.Proxies
	now      func() time.Time
	// cached are answers from memory, by pattern.
	cached map[string]cachedAnswer
	// patterns are all that was registered.
	patterns []string
}

// cachedAnswer answers a request from memory where it can and returns the status. A
// status of 0 leaves the request to its route, or to the error if there is one.
type cachedAnswer func(w http.ResponseWriter, r *http.Request) (status int, err error)

// Handle registers a handler as it is, for both listeners.
func (rt *router) Handle(pattern string, handler http.Handler) {
	rt.patterns = append(rt.patterns, pattern)
	rt.ServeMux.Handle(pattern, handler)
	rt.outer.Handle(pattern, handler)
}

// HandleFunc registers a route for both listeners, in the form that huma's adapter
// asks for.
func (rt *router) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	rt.add(pattern, handle, handle)
}

// handleInside registers a route that the listener for users does not have.
func (rt *router) handleInside(pattern string, handle http.HandlerFunc) {
	rt.add(pattern, handle, func(w http.ResponseWriter, r *http.Request) { rt.fail(callOf(r.Context()), noRoute) })
}

func (rt *router) add(pattern string, inside, outside http.HandlerFunc) {
	rt.patterns = append(rt.patterns, pattern)
	m := rt.metrics.route(pattern)
	rt.ServeMux.HandleFunc(pattern, rt.fromCache(pattern, m, rt.called(m, false, inside)))
	rt.outer.HandleFunc(pattern, rt.fromCache(pattern, m, rt.called(m, true, outside)))
}

// ServeHTTP serves the admins' listener, where a session's cookie speaks for a key.
func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signed, err := rt.sessions.Speak(r)
	if err != nil {
		rt.called(rt.metrics.route("session"), false, func(_ http.ResponseWriter, r *http.Request) {
			if errors.Is(err, dibs.ErrForbidden) {
				rt.logUnproved(r)
			}
			rt.fail(callOf(r.Context()), err)
		})(w, r)
		return
	}
	rt.ServeMux.ServeHTTP(w, signed)
}

// logUnproved has the program's log tell of a change by a session without its token, once a minute for each session: a
// page of another site may be trying it. The admin log has what a key did; it is not known that the key's owner did this.
func (rt *router) logUnproved(r *http.Request) {
	is, _ := rt.sessions.Of(r)
	if rt.unproved.Has(is.ID, rt.now()) || !rt.unproved.Note(is.ID, rt.now()) {
		return
	}
	rt.log.WarnContext(r.Context(), "a change by a session without its token was refused", "session", is.ID, "address", rt.proxies.Client(r), "method", r.Method,
		"path", r.URL.EscapedPath(), "request_id", callOf(r.Context()).id)
}

// called puts around a route what all routes have in common.
func (rt *router) called(m *routeMetrics, outside bool, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		c := &call{Recorder: web.Recorder{ResponseWriter: w}, id: rt.respond.Begin(w, r), zh: rt.respond.Chinese(r), outside: outside}
		c.request = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		// It runs for every outcome, so no request is left uncounted.
		defer func() {
			if fault := recover(); fault != nil {
				rt.respond.Recovered(c, c.request, c.id, fault, c.Status != 0)
			}
			m.observe(c.Status, start)
			rt.logAnswer(c, start)
		}()
		handle(c, c.request)
	}
}

// fromCache puts the cached answer of a pattern, if it has one, before its route.
func (rt *router) fromCache(pattern string, m *routeMetrics, route http.HandlerFunc) http.HandlerFunc {
	answer := rt.cached[pattern]
	if answer == nil {
		return route
	}
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		status, err := answer(w, r)
		switch {
		case status != 0:
			m.observe(status, start)
		case err != nil:
			rt.called(m, false, func(_ http.ResponseWriter, r *http.Request) { rt.fail(callOf(r.Context()), err) })(w, r)
		default:
			route(w, r)
		}
	}
}

// logAnswer writes a line for each call at the level debug. The address is not in
// it, since its query may hold a secret.
func (rt *router) logAnswer(c *call, start time.Time) {
	ctx := c.request.Context()
	if rt.log.Enabled(ctx, slog.LevelDebug) {
		rt.log.DebugContext(ctx, "a request was answered", "request_id", c.id, "route", c.request.Pattern, "status", c.Status,
			"took", time.Since(start), "key", c.caller.key)
	}
}

// fail answers a call with an error.
func (rt *router) fail(c *call, err error) { rt.respond.Fail(c, c.request, c.id, err) }

// methods are those that a route may have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

var (
	noRoute = web.Problem{
		Reason: dibs.NotFound, Detail: dibs.Text{EN: "there is nothing at this address; /docs lists what there is", ZH: "该地址不存在；可用接口见 /docs"},
	}
	noMethod = web.Problem{
		Reason: dibs.InvalidRequest, Status: http.StatusMethodNotAllowed,
		Detail: dibs.Text{EN: "this address does not take this method; Allow lists those it takes", ZH: "该地址不支持此方法；可用方法见 Allow"},
	}
)

// unknown answers requests that match no route: 405 with Allow where the address
// takes another method, else 404.
func (rt *router) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range methods {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := rt.Handler(probe); strings.HasPrefix(pattern, m+" ") {
			allowed = append(allowed, m)
			if m == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
	}
	if len(allowed) == 0 {
		rt.fail(callOf(r.Context()), noRoute)
		return
	}
	w.Header()["Allow"] = []string{strings.Join(allowed, ", ")}
	rt.fail(callOf(r.Context()), noMethod)
}
