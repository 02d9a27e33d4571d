package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/tokens"
	"github.com/dibs-dev/dibs/tracing"
)

// openTokens returns what verifies users' tokens; nil when no setting says how they
// are signed, as in dev.
func openTokens(ctx context.Context, c *config.Config, log *slog.Logger) (*tokens.Verifier, error) {
	secrets, err := c.JWTSecrets()
	if err != nil {
		return nil, fmt.Errorf("jwt_secret_file %w", err)
	}
	if len(secrets) == 0 && c.JWKSURL == "" {
		return nil, nil
	}
	return tokens.Open(ctx, tokens.Config{
		Secrets: secrets, JWKS: c.JWKSURL, Refresh: c.JWKSRefresh, Issuer: c.JWTIssuer, Audience: c.JWTAudience, Leeway: c.JWTLeeway, Logger: log,
	})
}

// openTracer returns what sends traces; nil when no collector is set.
func openTracer(ctx context.Context, c *config.Config, opts Options) (*tracing.Tracer, error) {
	if !tracing.Wanted(c.OTLPEndpoint) {
		return nil, nil //nolint:nilnil // no tracer is no fault
	}
	return tracing.Open(ctx, tracing.Config{Endpoint: c.OTLPEndpoint, OneIn: c.TraceOneIn, Version: opts.Version, Logger: opts.Log})
}

// lastSpans is how long a stop waits for the collector to take the last spans.
const lastSpans = 2 * time.Second

// closeTracer sends the last spans, for at most lastSpans.
func (s *Server) closeTracer(ctx context.Context) {
	if s.tracer == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
	defer cancel()
	if err := s.tracer.Close(closing); err != nil {
		s.log.Warn("the last traces were not sent", "err", err)
	}
}
