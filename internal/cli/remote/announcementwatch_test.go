package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestWatchAnnouncement follows an announcement until it is over: lines on the error
// output, or JSON documents on the output.
func TestWatchAnnouncement(t *testing.T) {
	env := clitest.Served(t)
	clitest.Publish(t, clitest.Admin(t, strings.TrimPrefix(env[0], "DIBS_URL=")), "phone", 10)
	clitest.Run(t, env, "follower", "import", clitest.WriteFile(t, "f.csv", numbers(1, 300)), "--merchant", "shop").Want(t, 0)
	told := []string{"campaign", "announce", "phone", "--merchant", "shop", "--threshold", "1", "--first", "1", "--rate", "1", "--watch"}
	watch := clitest.Start(t, env, append(told, "--id", "slow")...)
	watch.Await(t, watch.Err, `running  \d+ of 300 enqueued`)
	clitest.Run(t, env, "announcement", "pause", "slow").Want(t, 0)
	watch.Await(t, watch.Err, `paused  \d+ of 300 enqueued`)
	clitest.Run(t, env, "announcement", "cancel", "slow").Want(t, 0)
	if code := watch.Code(t); code != 0 || !strings.Contains(watch.Out.String(), "state      cancelled") {
		t.Errorf("exit code %d: %s", code, watch.Out)
	}
	watch = clitest.Start(t, env, append(told, "--id", "other", "--output", "json")...)
	watch.Await(t, watch.Out, `(?m)^\{"id":"other".*\}$`)
	clitest.Run(t, env, "announcement", "cancel", "other").Want(t, 0)
	if code := watch.Code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var last announce.AnnouncementView
	for docs := json.NewDecoder(strings.NewReader(watch.Out.String())); docs.More(); {
		if err := docs.Decode(&last); err != nil {
			t.Fatal(err)
		}
	}
	if last.State != announce.AnnouncementCancelled || watch.Err.String() != "" {
		t.Errorf("%+v, %s", last, watch.Err)
	}
	// Ctrl-C ends the looking, not the announcement.
	watch = clitest.Start(t, env, append(told, "--id", "third")...)
	watch.Await(t, watch.Err, `of 300 enqueued`)
	if code := watch.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	clitest.Run(t, env, "announcement", "show", "third").Want(t, 0, "running")
}
