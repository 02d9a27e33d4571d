package store

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/tracing"

	"github.com/dibs-dev/dibs/internal/cli/config"
)

// NewLogger writes to the command's error output, as the settings say.
func NewLogger(cmd *cobra.Command, c *config.Config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("log_level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(tracing.LogHandler(slog.NewJSONHandler(cmd.ErrOrStderr(), opts))), nil
	}
	return slog.New(tracing.LogHandler(slog.NewTextHandler(cmd.ErrOrStderr(), opts))), nil
}
