package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs/tracing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// lastSpans is how long a stop waits for the collector.
const lastSpans = 2 * time.Second

// openTracer returns what traces are sent by; nil when nobody wants them.
func openTracer(ctx context.Context, c *config.Config, version string, log *slog.Logger) (*tracing.Tracer, error) {
	if !tracing.Wanted(c.OTLPEndpoint) {
		return nil, nil //nolint:nilnil // no tracer is no fault
	}
	return tracing.Open(ctx, tracing.Config{Endpoint: c.OTLPEndpoint, OneIn: c.TraceOneIn, Version: version, Logger: log})
}

// closeTracer sends the last spans, for as long as a stop waits for them.
func (s *server) closeTracer(ctx context.Context) {
	if s.tracer == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
	defer cancel()
	if err := s.tracer.Close(closing); err != nil {
		s.log.Warn("the last traces were not sent", "err", err)
	}
}
