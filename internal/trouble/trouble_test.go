package trouble

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A trouble is logged at once, once a minute while it goes on, with how long it lasts, and
// at its end. Another error, the trouble of another name, and one after the end are logged
// at once again.
func TestTroubleIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&out, nil)), slog.LevelError)
		away, full := errors.New("connection refused"), errors.New("disk full")
		logged := func(want ...string) {
			t.Helper()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if out.Reset(); len(lines) != len(want) {
				t.Fatalf("%d lines, not %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
			}
			for i, line := range lines {
				if !strings.Contains(line, want[i]) {
					t.Errorf("%q lacks %q", line, want[i])
				}
			}
		}
		l.Over("sink", "events go on")
		for range 130 {
			l.Is("sink", "events wait", away, "sink", "s")
			<-time.After(time.Second)
		}
		logged(`level=ERROR msg="events wait" sink=s err="connection refused"`, "tries=61 for=1m0s", "tries=121 for=2m0s")
		for range 3 {
			l.Is("sink", "events wait", full)
			l.Is("sink", "events wait", away)
		}
		logged("disk full")
		l.Is("other", "events wait", away)
		l.Over("sink", "events go on", "sink", "s")
		l.Over("sink", "events go on", "sink", "s")
		l.Is("sink", "events wait", full)
		logged("connection refused", `level=INFO msg="events go on" sink=s after=2m10s`, `err="disk full"`)
		// Errors that all differ are cut off.
		for i := range 100 {
			l.Is("ports", "events wait", fmt.Errorf("port %d: reset", i))
		}
		logged("port 0", "port 1", "port 2", "port 3", "port 4", "port 5", "port 6", "port 7")
		l.Forget("ports")
		l.Over("ports", "events go on")
		l.ForgetAll()
		l.Over("other", "events go on")
		l.Is("sink", "events wait", full)
		logged("events wait")
	})
}
