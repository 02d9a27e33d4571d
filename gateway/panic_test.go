package gateway_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
)

// broken is a service that cannot even decide.
type broken struct{}

func (broken) Claim(context.Context, dibs.ClaimRequest) (dibs.Result, error) { panic("on purpose") }

// ends hears how spans end.
type ends chan error

func (e ends) Begin(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error)) {
	return ctx, func(err error) { e <- err }
}

func (e ends) Part(ctx context.Context, name string, about ...slog.Attr) (context.Context, func(error)) {
	return e.Begin(ctx, name, about...)
}

// TestPanic answers a claim over which the service panics, and ends its span with
// an error.
func TestPanic(t *testing.T) {
	spans := make(ends, 1)
	r := start(t, gateway.Config{Claims: broken{}, Tracer: spans})
	p := r.join("ann")
	if m := p.claim(r.sale(1), "tap"); m["outcome"] != "internal" || m["request_id"] == "" {
		t.Errorf("the answer is %v", m)
	}
	if err := <-spans; err == nil {
		t.Error("the span says that all went well")
	}
}
