package remote_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestTail prints events as they come, until Ctrl-C.
func TestTail(t *testing.T) {
	env := clitest.Served(t)
	api := clitest.Admin(t, strings.TrimPrefix(env[0], "DIBS_URL="))
	clitest.Publish(t, api, "first", 1)
	tail := clitest.Start(t, env, "events", "tail", "--after", "0")
	tail.Await(t, tail.Out, `"type":"dev\.dibs\.campaign\.published".*"subject":"first"`)
	clitest.Publish(t, api, "second", 1)
	tail.Await(t, tail.Out, `"subject":"second"`)
	if code := tail.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for line := range strings.Lines(tail.Out.String()) {
		if !strings.HasPrefix(line, `{"specversion"`) {
			t.Errorf("a line is no event: %s", line)
		}
	}
	// Without --after only what comes later counts.
	clitest.Run(t, env, "events", "tail", "--once", "--output", "json").Want(t, 2, "unknown flag: --output")
	if r := clitest.Run(t, env, "events", "tail", "--once"); r.Code != 0 || r.Out != "" {
		t.Errorf("%d: %s%s", r.Code, r.Out, r.Err)
	}
}
