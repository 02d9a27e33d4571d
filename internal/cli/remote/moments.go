package remote

import (
	"strings"
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
)

// parseMoment reads a time: RFC 3339, `now`, or `+` and a duration from now.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now.UTC().Truncate(time.Millisecond), nil
	}
	if after, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(after); err == nil {
			return now.Add(d).UTC().Truncate(time.Millisecond), nil
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, cli.Usagef("%s must be a time such as 2026-12-01T04:00:00Z, now, or +1h, not %q", flag, text)
	}
	return t, nil
}

// momentFlag reads a flag's time; zero when it was not given.
func momentFlag(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := time.Now()
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(ago), nil
	}
	return parseMoment(flag, text, now)
}
