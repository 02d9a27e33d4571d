package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// operation is a route with its documentation.
type operation struct {
	method, path string
	id           string
	tag          string
	summary      string
	description  string
	access       access
	// role is the least that a key needs; default: viewer for GET, admin for all
	// else.
	role dibs.Role
	// status is the one of success, default 200.
	status int
	// body is the type of the request's body, nil for none, and example one.
	body    reflect.Type
	example string
	// maxBody bounds the body.
	maxBody int64
	// knowsRepeats says that the route itself returns the first result to a
	// repeat, for as long as there is one.
	knowsRepeats bool
	// hidesUser keeps the user of the path, and of the answer, out of the audit log.
	hidesUser bool
	// noted puts a GET into the audit log: what it shows is worth money. What was
	// shown is not put there.
	noted bool
	// strictQuery refuses parameters that the route does not have, so that a
	// filter misspelt is not a filter ignored.
	strictQuery bool
}

// needs is the least role of a key that may call the route. What nobody gave
// away is for admins.
func (op *operation) needs() dibs.Role {
	switch {
	case op.role != "":
		return op.role
	case op.method == http.MethodGet:
		return dibs.RoleViewer
	}
	return dibs.RoleAdmin
}

// describe is the route's description, with what a key needs.
func (op *operation) describe() string {
	if op.access != adminOnly && op.access != either {
		return op.description
	}
	text := strings.TrimSpace(op.description + " Keys need the role " + string(op.needs()))
	if op.needs() == dibs.RoleAdmin {
		return text + "."
	}
	return text + " or a higher one."
}

// output is a route's answer as huma takes it.
type output[T any] struct {
	Status int
	Body   payload[T]
}

// payload is a body: a value, or the JSON of one.
type payload[T any] struct {
	value T
	raw   []byte
	// stream writes a body of CSV instead.
	stream func(io.Writer) error
}

// Schema is the value's own.
func (payload[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// ContentType tells huma the type, whatever Accept asks for.
func (p payload[T]) ContentType(string) string {
	if p.stream != nil {
		return typeCSV
	}
	return typeJSON[0]
}

func (p payload[T]) writeTo(w io.Writer) error {
	if p.stream != nil {
		return p.stream(w)
	}
	raw := p.raw
	if raw == nil {
		var err error
		if raw, err = encodeJSON(p.value); err != nil {
			return err
		}
	}
	_, err := w.Write(raw)
	return err
}

// encodeJSON is json.Marshal without escapes for HTML, which this is not.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// format writes payloads and problems, the only bodies there are.
var format = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		return v.(interface{ writeTo(io.Writer) error }).writeTo(w)
	},
	Unmarshal: json.Unmarshal,
}

// answer is a problem as huma takes it.
type answer struct {
	problem
	zh bool
	id string
}

// GetStatus tells huma the status.
func (e *answer) GetStatus() int { return e.statusCode() }

// ContentType tells huma the type.
func (*answer) ContentType(string) string { return typeProblem[0] }

func (e *answer) writeTo(w io.Writer) error {
	_, err := w.Write(appendProblem(nil, &e.problem, e.zh, e.id))
	return err
}

// answerTo prepares a problem as the answer to a call.
func answerTo(c *call, p problem) *answer {
	setProblemHeaders(c.Header(), &p)
	return &answer{problem: p, zh: c.zh, id: c.id}
}

// huma has one hook for all the errors that it finds by itself, for the whole
// process. It is set while the process has one goroutine, and leaves to the
// hook before it every request that is not of this package.
var _ = func() bool {
	before := huma.NewErrorWithContext
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		c := callOf(ctx.Context())
		if c == nil {
			return before(ctx, status, msg, errs...)
		}
		var fs []dibs.Fault
		for _, err := range errs {
			if f, ok := faultOf(err); ok {
				fs = append(fs, f)
			}
		}
		return answerTo(c, problemOf(dibs.Invalid(fs...)))
	}
	return true
}()

// register adds a route without a body.
func register[I, O any](a *api, op operation, run func(ctx context.Context, c *call, in *I) (O, error)) {
	status := op.successStatus()
	huma.Register(a.huma, op.document(a), func(ctx context.Context, in *I) (*output[O], error) {
		c := callOf(ctx)
		value, err := audited(ctx, a, c, &op, func() (O, error) { return run(ctx, c, in) })
		if err != nil {
			return nil, answerTo(c, a.problem(c.request, err, c.id))
		}
		out := &output[O]{Status: status, Body: payload[O]{value: value, stream: c.stream}}
		if c.code != 0 {
			out.Status = c.code
		}
		return out, nil
	})
	op.finish(a)
}

// change adds a route with a body of B. On POST, Idempotency-Key makes a
// repeat return the first answer.
func change[I, B, O any](a *api, op operation, run func(ctx context.Context, c *call, in *I, body *B) (O, error)) {
	op.body = reflect.TypeFor[B]()
	s, status := shapeOf[B](a.schemas), op.successStatus()
	huma.Register(a.huma, op.document(a), func(ctx context.Context, in *I) (*output[O], error) {
		c := callOf(ctx)
		var body B
		value, err := a.body(c, s, op, &body)
		if err != nil {
			return nil, answerTo(c, a.problem(c.request, err, c.id))
		}
		out := &output[O]{Status: status}
		act := func() (O, error) {
			return audited(ctx, a, c, &op, func() (O, error) { return run(ctx, c, in, &body) })
		}
		do := func() (any, error) { return act() }
		if op.knowsRepeats {
			out.Body.value, err = act()
			if c.code != 0 {
				out.Status = c.code
			}
		} else {
			err = a.once(ctx, c, value, out.Body.setRaw, &out.Status, do)
		}
		if err != nil {
			return nil, answerTo(c, a.problem(c.request, err, c.id))
		}
		return out, nil
	})
	op.finish(a)
}

func (p *payload[T]) setRaw(b []byte) { p.raw = b }

// noBody is the body of an action that has nothing to say.
type noBody struct{}

// body reads and decodes a call's body.
func (a *api) body(c *call, s shape, op operation, into any) (any, error) {
	raw, err := readBody(c, c.request, op.maxBody)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		if op.body == reflect.TypeFor[noBody]() || op.knowsRepeats {
			return map[string]any{}, nil
		}
		return nil, dibs.Invalid(dibs.Fault{Problem: dibs.Text{EN: "a JSON body is required", ZH: "必须提供 JSON 请求体"}})
	}
	return s.decode(raw, into)
}
