package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/web"
)

// routes is what handlers share, and what their routes are registered with. It does
// not change while it serves.
//
// All that requests share and change (the log, the memory of answers, the limits, the
// metrics) is safe for concurrent use by itself.
type routes struct {
	*router
	*document
	auth    *authenticator
	acts    *adminLog
	memory  web.Memory
	proxies *web.Proxies
	seconds *secondPersons
	// calls bounds the calls of users, nil for no bound, strangers those without credentials.
	calls     Limits
	strangers strangers
	// stranger counts a call that names a campaign without a page, as one of its address.
	stranger func(http.ResponseWriter, *http.Request) error
	// importing has a place for each file that is being imported.
	importing chan struct{}
	// tracer is nil when calls are not traced.
	tracer Tracer
	now    func() time.Time
	// maxBody bounds bodies in bytes, and maxAdminBody those that carry items.
	maxBody, maxAdminBody int64
}

// admit is the first step of every operation: it finds the caller, refuses those
// who may not use the route, and begins the trace. The body is not read before.
func (a *routes) admit(op *operation) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		c := callOf(ctx.Context())
		if c.outside && (op.access == adminOnly || op.inside) {
			a.fail(c, noRoute)
			return
		}
		err := a.enter(c, op, op.access)
		if err == nil {
			err = op.refuseTwice(c.request)
		}
		if err == nil && op.first != nil {
			err = op.first(c)
		}
		if err != nil {
			a.fail(c, err)
			return
		}
		if op.access >= userOnly {
			c.Header()["Cache-Control"] = web.NoStore
		}
		if strings.HasPrefix(op.path, "/v1/") {
			// huma writes the type itself, and CSV another disposition. Routes beside the API,
			// such as /readyz, people look at in their browsers.
			web.SetJSON(c.Header())
		}
		if a.tracer != nil {
			defer traceCall(a.tracer, c, op)()
			ctx = huma.WithContext(ctx, c.request.Context())
		}
		next(ctx)
	}
}

// headerKeyExpires is the end of the call's key, on the answers of the last two weeks before it.
const headerKeyExpires = "Dibs-Key-Expires"

// maxImports is how many files a node imports at a time: each is on its disk while it
// arrives, and then a transaction of the ledger.
const maxImports = 4

var errImports = faults.Busy(5*time.Second, dibs.Textf("this node imports %d files already", "该节点正在导入 %d 个文件", maxImports))

// enter finds the caller of a call, or says why the caller may not use the route; the
// admin log has that, too.
// The limits come after the credentials: they count users, and a stranger must not use
// up the calls of one. Keys are not counted.
func (a *routes) enter(c *call, op *operation, need callers) (err error) {
	if c.caller, err = a.auth.admit(c, need, op); err != nil {
		a.acts.refuse(c.request.Context(), c, op, err)
		return err
	}
	if !c.caller.ends.IsZero() {
		c.Header()[headerKeyExpires] = []string{c.caller.ends.UTC().Format(time.RFC3339)}
	}
	switch {
	case op.limited || c.caller.isAdmin():
		return nil
	case c.caller.user != "":
		return takeTurn(c.request.Context(), c.Header(), a.calls, dibs.ClaimRequest{UserID: c.caller.user, Address: a.proxies.Client(c.request)})
	case need == public || op.counted:
		return a.strangers.count(c, c.request)
	}
	// The remaining calls cost no more than their refusal.
	return nil
}

// add registers an operation with huma, and completes its documentation. answer is the type of
// the value that it answers with.
func add[I any](a *routes, op *operation, answer reflect.Type, handle func(ctx context.Context, c *call, in *I) (*output, error)) {
	d := a.operation(op)
	d.Responses[strconv.Itoa(d.DefaultStatus)] = a.answers(answer)
	d.Middlewares = huma.Middlewares{a.admit(op)}
	huma.Register(a.huma, d, func(ctx context.Context, in *I) (*output, error) {
		c := callOf(ctx)
		if op.long {
			defer c.takeLong()()
		}
		out, err := handle(ctx, c, in)
		if err != nil {
			return nil, refuse(c, a.respond.Problem(c.request, c.id, err))
		}
		return out, nil
	})
	a.finish(op)
	op.single = a.singleParameters(op)
}

// refuseTwice refuses a parameter of the query that is there twice and is no list: what looks at the call before dibs
// does may have taken the other one of the two.
func (op *operation) refuseTwice(r *http.Request) error {
	if r.URL.RawQuery == "" || len(op.single) == 0 {
		return nil
	}
	var fs faults.List
	given := r.URL.Query()
	for _, name := range op.single {
		if len(given[name]) > 1 {
			fs = append(fs, givenTwice(name))
		}
	}
	return fs.Err()
}

// givenTwice is the fault of a parameter that may be there once.
func givenTwice(name string) dibs.Fault {
	return dibs.Fault{Field: "/" + name, Problem: dibs.Text{EN: "may be there once", ZH: "只能出现一次"}}
}

// register adds a route without a body.
// No repeat is remembered: it is for routes that read, or whose repeat changes nothing.
func register[I, O any](a *routes, op operation, run func(ctx context.Context, c *call, in *I) (O, error)) {
	add(a, &op, reflect.TypeFor[O](), func(ctx context.Context, c *call, in *I) (*output, error) {
		value, err := withLog(ctx, a.acts, c, &op, func() (O, error) { return run(ctx, c, in) })
		return outputOf(c, &op, value), err
	})
}

// change adds a route with a body of B. On POST, Idempotency-Key makes a repeat
// return the first answer.
//
// Without the key, or on another method, each call runs. A key that comes again with
// another body is refused, and nothing is changed.
func change[I, B, O any](a *routes, op operation, run func(ctx context.Context, c *call, in *I, body *B) (O, error)) {
	checkedChange(a, op, nil, run)
}

// checkedChange is change with a check of a body's values, so that a body whose form
// is wrong is answered with the faults of its values too.
func checkedChange[I, B, O any](a *routes, op operation, check func(*B) error, run func(ctx context.Context, c *call, in *I, body *B) (O, error)) {
	op.body = reflect.TypeFor[B]()
	if op.maxBody == 0 {
		op.maxBody = a.maxBodyOf(op.access)
	}
	decoder := web.NewDecoder(a.schemas, check)
	if op.second != nil {
		replay(a, &op, decoder, run)
	}
	add(a, &op, reflect.TypeFor[O](), func(ctx context.Context, c *call, in *I) (*output, error) {
		var body B
		value, err := readChange(c, &op, decoder, &body)
		if err != nil {
			return nil, err
		}
		if err := readNulls(&op, value, &body); err != nil {
			return nil, err
		}
		if waits, err := a.seconds.waits(ctx, c, &op, &body); err != nil {
			return nil, err
		} else if waits {
			answer, err := a.ask(ctx, c, &op, in, &body, value)
			return &output{Status: answer.Status, Body: payload{raw: answer.Body}}, err
		}
		do := func(ctx context.Context) (O, error) {
			return withLog(ctx, a.acts, c, &op, func() (O, error) { return run(ctx, c, in, &body) })
		}
		if op.knowsRepeats {
			v, err := do(ctx)
			return outputOf(c, &op, v), err
		}
		answer, err := a.once(ctx, c, &op, value, func(ctx context.Context) (any, error) { return do(ctx) })
		return &output{Status: answer.Status, Body: payload{raw: answer.Body}}, err
	})
}

// maxUserBody bounds the bodies of users and strangers in bytes. The longest that they have to send, one with a voucher,
// needs a quarter of it; a body that is under way keeps in memory what has come of it.
const maxUserBody = 16 << 10

// maxBodyOf bounds the bodies of routes for some callers.
func (a *routes) maxBodyOf(who callers) int64 {
	if who == adminOnly {
		return a.maxBody
	}
	return min(a.maxBody, maxUserBody)
}

// readNulls tells a patch which of its members are null. Decoded they look as if they
// were absent, and a null that did nothing would be taken for done. A patch that cannot
// be told takes none.
func readNulls(op *operation, value, body any) error {
	if op.method != http.MethodPatch {
		return nil
	}
	members, _ := value.(map[string]any)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return members[name] != nil })
	if len(names) == 0 {
		return nil
	}
	if patch, ok := body.(interface{ Nulls(names []string) }); ok {
		patch.Nulls(names)
		return nil
	}
	fs := make([]dibs.Fault, len(names))
	for i, name := range names {
		fs[i] = dibs.Fault{Field: "/" + name, Problem: dibs.NotNull}
	}
	return dibs.Invalid(fs...)
}

// outputOf is the answer with a value, or with what the call says instead.
func outputOf(c *call, op *operation, value any) *output {
	out := &output{Status: op.successStatus(), Body: payload{value: value, stream: c.stream}}
	if c.code != 0 {
		out.Status = c.code
	}
	return out
}

// once runs a change, or answers its repeat.
func (a *routes) once(ctx context.Context, c *call, op *operation, body any, do func(context.Context) (any, error)) (web.Answer, error) {
	answer, err := web.Do(ctx, a.memory, web.Change{Request: c.request, Caller: c.caller.name(), Body: body, Status: op.successStatus()}, do)
	if answer.Replayed {
		c.replayed()
	}
	return answer, err
}

// ref names a change in the ledger by its Idempotency-Key; "" without one.
func (c *call) ref() (string, error) { return web.Ref(c.request, c.caller.name()) }

// readChange reads and decodes a call's body.
func readChange(c *call, op *operation, d web.Decoder, into any) (any, error) {
	raw, err := web.ReadBody(c, c.request, op.maxBody)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		if op.body == reflect.TypeFor[noBody]() || op.knowsRepeats || op.mayBeEmpty {
			return map[string]any{}, nil
		}
		return nil, dibs.Invalid(dibs.Fault{Problem: dibs.Text{EN: "a JSON body is required", ZH: "必须提供 JSON 请求体"}})
	}
	return d.Decode(raw, into)
}

// subject tells the log of acts how to read the things whose addresses begin with a
// path, for the acts on them.
func subject[T any](a *routes, path string, read func(ctx context.Context, id string) (T, error)) {
	a.acts.subjects[path] = func(ctx context.Context, id string) (any, error) { return read(ctx, id) }
}

// plain adds a route whose handler writes its answer itself, and which needs no
// credentials.
func (a *routes) plain(op operation, contentType string, handle func(c *call, w http.ResponseWriter, r *http.Request) error) {
	a.describePlain(&op, contentType)
	a.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		var err error
		if op.counted {
			err = a.enter(c, &op, open)
		}
		if err == nil {
			err = handle(c, w, r)
		}
		if err != nil {
			a.fail(c, err)
		}
	})
}

// upload adds a route for administrators whose body is a CSV file of at most most
// bytes. run gets the file at its start and the hash of its bytes.
//
// The file is stored and hashed before run is called, so a body that breaks off
// changes nothing, and a repeat is recognised by the same bytes.
func upload[T any](a *routes, op operation, most int64, run func(ctx context.Context, c *call, file io.ReadSeeker, sum string) (T, error)) {
	handle := func(c *call) (body []byte, err error) {
		if err = a.enter(c, &op, adminOnly); err != nil {
			return nil, err
		}
		select {
		case a.importing <- struct{}{}:
			defer func() { <-a.importing }()
		default:
			return nil, errImports
		}
		defer traceCall(a.tracer, c, &op)()
		c.Header()["Cache-Control"] = web.NoStore
		file, sum, err := web.ReceiveCSV(c, c.request, most)
		if err != nil {
			return nil, err
		}
		defer func() {
			if closing := file.Close(); err == nil {
				err = closing
			}
		}()
		ctx := c.request.Context()
		do := func(ctx context.Context) (any, error) {
			return withLog(ctx, a.acts, c, &op, func() (T, error) { return run(ctx, c, file, sum) })
		}
		if op.knowsRepeats {
			v, err := do(ctx)
			if err != nil {
				return nil, err
			}
			return web.EncodeJSON(v)
		}
		answer, err := a.once(ctx, c, &op, sum, do)
		return answer.Body, err
	}
	describeUpload[T](a.document, &op)
	a.handleInside(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		body, err := handle(c)
		if err != nil {
			a.fail(c, err)
			return
		}
		web.SetJSON(w.Header())
		a.respond.Write(w, body)
	})
}

// Tracer makes the spans of requests; package tracing has one.
type Tracer interface {
	// Request begins the span of a request. It continues the trace that the request's
	// headers name when the sender is trusted.
	Request(ctx context.Context, h http.Header, name string, trusted bool, about ...slog.Attr) (in context.Context, end func(error))
}

// traceCall begins the span of an administrator's call, whose request is in it from
// then on, and returns what ends it. Without a tracer it does nothing.
// A status of 500 and above is the service's fault and marks the span; a refusal is
// not.
func traceCall(t Tracer, c *call, op *operation) (end func()) {
	if t == nil || !c.caller.isAdmin() {
		return func() {}
	}
	ctx, done := t.Request(c.request.Context(), c.request.Header, op.id, true,
		slog.String("http.request.method", op.method), slog.String("http.route", op.path),
		slog.String("dibs.request_id", c.id), slog.String("dibs.key", c.caller.key))
	c.request = c.request.WithContext(ctx)
	return func() {
		var err error
		if c.Status >= http.StatusInternalServerError {
			err = fmt.Errorf("status %d", c.Status)
		}
		done(err)
	}
}

// traceClaim begins the span of a claim, and returns the request in it. Users are
// not trusted to continue a trace. Without a tracer it does nothing, and does not
// allocate.
func traceClaim(t Tracer, r *http.Request, id string) (*http.Request, func(error)) {
	if t == nil {
		return r, func(error) {}
	}
	ctx, end := t.Request(r.Context(), r.Header, "claim", false,
		slog.String("dibs.request_id", id), slog.String("dibs.campaign", r.PathValue("id")))
	return r.WithContext(ctx), end
}
