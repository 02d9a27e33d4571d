package remote_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAnnouncements announces a campaign to followers, slowly and at once.
func TestAnnouncements(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	verb := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, clitest.Secrets, append(args, "--url", url)...)
	}
	// At one a second the slow announcement lasts for minutes, however slow the machine is.
	users := "user,rank\n42,1\n43,5\n44\n" + numbers(1001, 1297)
	verb("follower", "import", clitest.WriteFile(t, "good.csv", users), "--merchant", "shop").Want(t, 0, "imported", "300")
	verb("announcement", "threshold", "--cover", "99").Want(t, 0, "FOLLOWERS    MERCHANTS  SHARE", "up to 1,000", "100")
	clitest.Publish(t, clitest.Admin(t, url), "phone", 10)
	verb("campaign", "announce", "phone").Want(t, 1, "merchant is required")
	verb("campaign", "announce", "phone", "--merchant", "shop", "--threshold", "1", "--first", "2").Want(t, 1, "first must be at most the threshold")
	verb("campaign", "announce", "phone", "--merchant", "shop", "--id", "slow", "--threshold", "1", "--rate", "1").Want(t, 0, "1 at once, the others at 1/s")
	verb("announcement", "pause", "slow").Want(t, 0, "paused")
	verb("campaign", "announce", "phone", "--merchant", "shop").Want(t, 1, "slow of this campaign is paused")
	verb("announcement", "resume", "slow").Want(t, 0, "running")
	verb("announcement", "cancel", "slow").Want(t, 0, "cancelled")
	verb("announcement", "resume", "slow").Want(t, 1, "slow is cancelled")
	verb("campaign", "announce", "phone", "--merchant", "shop", "--id", "quick").Want(t, 0, "quick", "all at once")
	verb("announcement", "show", "quick", "--watch").Want(t, 0, "done", "all at once", "300 in 1 event\n")
	verb("announcement", "show", "quick", "--output", "json").Want(t, 0, `"enqueued": 300`)
	verb("announcement", "list", "phone").Want(t, 0, "quick", "slow")
}

// numbers are the lines of a file of users whose ids are these numbers.
func numbers(from, to int) string {
	var lines strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&lines, i)
	}
	return lines.String()
}
