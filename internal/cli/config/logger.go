package config

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/dibs-dev/dibs/tracing"
)

// Logger returns a logger that writes to out in the form that the settings ask for. Lines about a
// request have the id of its trace.
func (c *Config) Logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("log_level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	var lines slog.Handler = slog.NewTextHandler(out, opts)
	if c.LogFormat == "json" {
		lines = slog.NewJSONHandler(out, opts)
	}
	return slog.New(tracing.LogHandler(lines)), nil
}
