package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
)

// Tracer shows where time goes. Package tracing has the one that there is.
type Tracer interface {
	// Request begins the span of a request. The trace that its headers name goes on
	// in it when who sent it is trusted.
	Request(ctx context.Context, h http.Header, name string, trusted bool, about ...slog.Attr) (in context.Context, end func(error))
}

func untraced() {}

func nobodyTraces(error) {}

// trace begins the span of an administrator's call, whose request is in it from
// then on, and returns what ends it.
func (a *api) trace(c *call, op *operation) (end func()) {
	if a.cfg.Tracer == nil || !c.who.isAdmin() {
		return untraced
	}
	ctx, done := a.cfg.Tracer.Request(c.request.Context(), c.request.Header, op.id, true,
		slog.String("http.request.method", op.method), slog.String("http.route", op.path),
		slog.String("dibs.request_id", c.id), slog.String("dibs.key", c.who.key))
	c.request = c.request.WithContext(ctx)
	return func() {
		var err error
		if c.status >= http.StatusInternalServerError {
			err = fmt.Errorf("status %d", c.status)
		}
		done(err)
	}
}

// traceClaim begins the span of a claim, where those are wanted. Its users are
// strangers.
func (h *claimHandler) traceClaim(r *http.Request, id string) (*http.Request, func(error)) {
	ctx, end := h.cfg.Tracer.Request(r.Context(), r.Header, "claim", false,
		slog.String("dibs.request_id", id), slog.String("dibs.campaign", r.PathValue("id")))
	return r.WithContext(ctx), end
}
