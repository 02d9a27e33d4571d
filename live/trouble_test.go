package live

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An error of settling is logged at once and once a minute while it goes on; another one,
// and the same one after settling has worked, are logged at once again.
func TestSettlingTroubleIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Settler{log: slog.New(slog.NewTextHandler(&out, nil))}
		away, full := errors.New("connection refused"), errors.New("disk full")
		lines := func() int { return strings.Count(out.String(), "settling failed") }
		for range 61 {
			s.trouble(away)
			<-time.After(2 * time.Second)
		}
		if n := lines(); n != 3 {
			t.Errorf("%d lines in two minutes:\n%s", n, out.String())
		}
		s.trouble(full)
		s.trouble(full)
		if n := lines(); n != 4 {
			t.Errorf("%d lines after another error", n)
		}
		s.told = ""
		s.trouble(full)
		if n := lines(); n != 5 {
			t.Errorf("%d lines after settling has worked", n)
		}
	})
}
