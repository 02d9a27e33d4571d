package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
)

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
