package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/dibs-dev/dibs/tokens"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// openTokens returns what verifies users' tokens; nil where none are signed.
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
