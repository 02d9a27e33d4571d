package remote

import (
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
)

// momentFlag is a flag that takes a moment, and where the moment goes.
type momentFlag struct {
	flag, text string
	to         *time.Time
}

// readMoments reads the flags that were given, and leaves the others as they are. All are measured
// from one now, so that -1h and now are an hour apart.
func readMoments(now time.Time, flags ...momentFlag) (err error) {
	for _, f := range flags {
		if f.text == "" {
			continue
		}
		if *f.to, err = parseMoment(f.flag, f.text, now); err != nil {
			return err
		}
		if f.flag == "--since" && f.to.After(now) {
			return cli.Usagef("--since %s lies ahead, and nothing has happened since then: -1h is an hour ago", f.text)
		}
	}
	return nil
}

// parseMoment reads a moment in one of its forms: RFC 3339 with a zone, now, or a duration from now,
// such as +1h and -1h. There is no form without a zone: the user and the server may be in different
// ones. Moments that are measured from now are whole milliseconds, as the server keeps them; now is
// this machine's clock.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, cli.Usagef("%s is required, such as %s +1h", flag, flag)
	}
	if text == "now" {
		return now.UTC().Truncate(time.Millisecond), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).UTC().Truncate(time.Millisecond), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, cli.Usagef("%s must be a time such as 2026-12-01T04:00:00Z, now, or hours and minutes from now such as %s, not %q", flag, ahead(flag), text)
	}
	return t, nil
}

// ahead is an example of a duration for a flag.
func ahead(flag string) string {
	if flag == "--since" || flag == "--until" {
		return "-1h30m"
	}
	return "+48h or +1h30m"
}

// checkLimit checks the flag --limit. Without the check 0 would read the whole list (see all).
func checkLimit(limit int) error {
	if limit < 1 {
		return cli.Usagef("--limit must be at least 1")
	}
	return nil
}
