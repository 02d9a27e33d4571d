package httpapi

import (
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

const typeCSV = "text/csv; charset=utf-8"

// output is a route's answer as huma takes it.
// Status is set in every answer without an error.
//
// It is one type for all routes: what huma does with an answer is compiled once for each
// type of answer, which for all of ours took most of the time that this package takes to compile.
type output struct {
	Status int
	Body   payload
}

// payload is a body: a value, or the JSON of one, or a stream of CSV.
// Exactly one of its members counts: stream before raw before value. raw is the
// answer that a repeat must get byte by byte.
type payload struct {
	value  any
	raw    []byte
	stream func(io.Writer) error
}

// Schema says nothing: add has documented the value's own.
func (payload) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// ContentType tells huma the type, whatever Accept asks for.
func (p payload) ContentType(string) string {
	if p.stream != nil {
		return typeCSV
	}
	return web.TypeJSON[0]
}

// An error of the stream comes after the status was sent; the connection is cut then.
func (p payload) writeTo(w io.Writer) error {
	if p.stream != nil {
		return p.stream(w)
	}
	raw := p.raw
	if raw == nil {
		var err error
		if raw, err = web.EncodeJSON(p.value); err != nil {
			return err
		}
	}
	_, err := w.Write(raw)
	return err
}

// format writes payloads and refusals, the only bodies there are.
var format = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		return v.(interface{ writeTo(io.Writer) error }).writeTo(w)
	},
	Unmarshal: json.Unmarshal,
}

// refusal is a problem as huma takes it.
type refusal struct {
	web.Problem
	zh bool
	id string
}

// refuse prepares a problem as the answer to a call.
func refuse(c *call, p web.Problem) *refusal {
	p.SetHeaders(c.Header())
	return &refusal{Problem: p, zh: c.zh, id: c.id}
}

// GetStatus tells huma the status.
func (e *refusal) GetStatus() int { return e.StatusCode() }

// ContentType tells huma the type.
func (*refusal) ContentType(string) string { return web.TypeProblem[0] }

func (e *refusal) writeTo(w io.Writer) error {
	_, err := w.Write(e.Append(nil, e.zh, e.id))
	return err
}

// One hook of huma is for all the errors that it finds by itself, for the whole
// process. It is set while the process has one goroutine, and leaves requests of
// other packages to the hook before it.
var _ = func() bool {
	before := huma.NewErrorWithContext
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		// A request of another handler in the process has no call.
		c := callOf(ctx.Context())
		if c == nil {
			return before(ctx, status, msg, errs...)
		}
		var fs []dibs.Fault
		for _, err := range errs {
			if f, ok := web.FaultOf(err); ok {
				fs = append(fs, f)
			}
		}
		return refuse(c, web.ProblemOf(dibs.Invalid(fs...)))
	}
	return true
}()
