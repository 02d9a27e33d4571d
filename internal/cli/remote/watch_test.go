package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestWatch follows a campaign until Ctrl-C, and until the time is over.
func TestWatch(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "watch").Want(t, 1, "no campaign is published")
	clitest.Run(t, env, "campaign", "create", "--id", "w", "--title", "W", "--units", "7", "--ends", "+1h", "--publish").Want(t, 0)
	// On a busy machine the first look may take all of a short time.
	for length, lines := 250*time.Millisecond, 0; lines < 2; length *= 2 {
		r := clitest.Run(t, env, "campaign", "watch", "--for", length.String(), "--every", "100ms")
		r.Want(t, 0, "RATE/S")
		if lines = strings.Count(r.Out, " w "); strings.Contains(r.Out, "\x1b") || lines < 2 && length > clitest.Patience {
			t.Fatalf("%d lines in %s:\n%s", lines, length, r.Out)
		}
	}
	p := clitest.Start(t, env, "campaign", "watch", "w", "--output", "json", "--every", "100ms")
	p.Await(t, p.Out, `(?m)^\{"at":"[^"]+","campaign_id":"w","remaining":7,.*\}$`)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	clitest.Run(t, env, "campaign", "watch", "nobody").Want(t, 1, "not_found")
}
