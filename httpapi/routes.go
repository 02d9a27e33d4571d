package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// call is one request on any route but the claim's: its writer, who sent it,
// and how it is to be answered.
type call struct {
	http.ResponseWriter
	request *http.Request
	id      string
	zh      bool
	who     caller
	// outside says that the call came to the listener that is not for admins.
	outside bool
	// code replaces the route's status when it is set, and stream its body.
	code   int
	stream func(io.Writer) error
	// status is what was sent; 0 while nothing was.
	status int
}

type callKey struct{}

// callOf returns the call of a context, nil when it is not of this package.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// WriteHeader notes the status and sends it.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (c *call) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController the writer beneath.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// routes is the mux, with what every route has in common around it: request
// ids, headers, metrics, and answers to what goes wrong.
type routes struct {
	*http.ServeMux
	// outer serves everybody, with what is for admins left out.
	outer *http.ServeMux
	api   *api
	// patterns are all that was registered.
	patterns []string
}

// Handle registers a route that brings all of its own, for both listeners.
func (rt *routes) Handle(pattern string, handler http.Handler) {
	rt.patterns = append(rt.patterns, pattern)
	rt.ServeMux.Handle(pattern, handler)
	rt.outer.Handle(pattern, handler)
}

// inner registers a route that only the listener of admins has.
func (rt *routes) inner(pattern string, handle http.HandlerFunc) {
	rt.patterns = append(rt.patterns, pattern)
	m := rt.api.metrics.route(pattern)
	rt.ServeMux.HandleFunc(pattern, rt.called(m, false, handle))
	rt.outer.HandleFunc(pattern, rt.called(m, true, func(_ http.ResponseWriter, r *http.Request) {
		rt.api.fail(callOf(r.Context()), noRoute)
	}))
}

// HandleFunc registers a route in the form that huma's adapter asks for.
func (rt *routes) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	m := rt.api.metrics.route(pattern)
	rt.patterns = append(rt.patterns, pattern)
	rt.ServeMux.HandleFunc(pattern, rt.quickly(pattern, m, rt.called(m, false, handle)))
	rt.outer.HandleFunc(pattern, rt.quickly(pattern, m, rt.called(m, true, handle)))
}

// called puts around a route what all have in common.
func (rt *routes) called(m *routeMetrics, outside bool, handle http.HandlerFunc) http.HandlerFunc {
	a := rt.api
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		c := &call{ResponseWriter: w, id: a.ids.of(r.Header), zh: a.lang.chinese(r.Header), outside: outside}
		c.request = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		h := w.Header()
		h[headerRequestID] = []string{c.id}
		h["X-Content-Type-Options"] = noSniff
		defer func() {
			if fault := recover(); fault != nil {
				// What was sent cannot be taken back; the connection is cut instead.
				sent := c.status != 0
				a.panicked(c, c.request, fault, c.id)
				if sent {
					panic(http.ErrAbortHandler)
				}
			}
			m.observe(c.status, start)
			a.logAnswer(c, start)
		}()
		handle(c, c.request)
	}
}

// logAnswer writes a line for each call, where somebody wants that. What was
// asked for may be a secret, and is not in it.
func (a *api) logAnswer(c *call, start time.Time) {
	ctx := c.request.Context()
	if a.log.Enabled(ctx, slog.LevelDebug) {
		a.log.DebugContext(ctx, "a request was answered", "request_id", c.id, "route", c.request.Pattern, "status", c.status,
			"took", time.Since(start), "key", c.who.key)
	}
}

// panicked logs a panic and, when nothing was sent, answers it.
func (a *api) panicked(w http.ResponseWriter, r *http.Request, fault any, id string) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	c, _ := w.(*call)
	if c != nil && c.status != 0 {
		a.log.Warn("an answer was cut off", "request_id", id, "route", r.Pattern, "panic", fault)
		return
	}
	a.log.Error("panic", "request_id", id, "route", r.Pattern, "panic", fault, "stack", string(debug.Stack()))
	a.write(w, a.begin(w, r, problemOf(errors.New("panic")), id))
}

// begin sends a problem's headers and returns its body.
func (a *api) begin(w http.ResponseWriter, r *http.Request, p problem, id string) []byte {
	setProblemHeaders(w.Header(), &p)
	body := appendProblem(nil, &p, a.lang.chinese(r.Header), id)
	w.WriteHeader(p.statusCode())
	return body
}

// fail answers a call with an error.
func (a *api) fail(c *call, err error) {
	a.write(c, a.begin(c, c.request, a.problem(c.request, err, c.id), c.id))
}

// problem turns an error into its problem and logs those that are dibs's own.
func (a *api) problem(r *http.Request, err error, id string) problem {
	var p problem
	if errors.As(err, &p) {
		return p
	}
	p = problemOf(err)
	a.logFailure(r, &p, err, id)
	return p
}

// logFailure logs an answer of 500 and above with its cause.
func (a *api) logFailure(r *http.Request, p *problem, err error, id string) {
	if p.statusCode() < http.StatusInternalServerError || r.Context().Err() != nil {
		return
	}
	level := slog.LevelError
	if p.reason == dibs.Overloaded {
		level = slog.LevelDebug
	}
	a.log.Log(r.Context(), level, "a request failed", "request_id", id, "route", r.Pattern, "reason", p.reason.String(), "err", err)
}

// write sends a body; a connection that is gone is worth a debug line.
func (a *api) write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		a.log.Debug("an answer was not delivered", "err", err)
	}
}

// methods are those that a route may have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

var (
	noRoute  = problem{reason: dibs.NotFound, detail: dibs.Text{EN: "there is nothing at this address; /docs lists what there is", ZH: "该地址不存在；可用接口见 /docs"}}
	noMethod = problem{
		reason: dibs.InvalidRequest, status: http.StatusMethodNotAllowed,
		detail: dibs.Text{EN: "this address does not take this method; Allow lists those it takes", ZH: "该地址不支持此方法；可用方法见 Allow"},
	}
)

// unknown answers what no route takes: 405 with Allow where another method
// would do, else 404.
func (rt *routes) unknown(w http.ResponseWriter, r *http.Request) {
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
	p := noRoute
	if len(allowed) > 0 {
		p = noMethod
		w.Header()["Allow"] = []string{strings.Join(allowed, ", ")}
	}
	c := callOf(r.Context())
	rt.api.write(w, rt.api.begin(w, r, p, c.id))
}
