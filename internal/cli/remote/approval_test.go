package remote_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestApprovals asks for a deposit, which another administrator approves by the verb.
func TestApprovals(t *testing.T) {
	data := t.TempDir()
	boss := clitest.Run(t, nil, "key", "create", "--name", "boss", "--data", data)
	boss.Want(t, 0)
	key := regexp.MustCompile(`dibs_\S+`).FindString(boss.Out)
	_, url := clitest.Serve(t, data, "--approve", "deposits", "--approve", "refunds=100.00CNY")
	asked := clitest.Run(t, clitest.Secrets, "account", "deposit", "42", "--amount", "500", "--currency", "CNY", "--ref", "r", "--url", url)
	asked.Want(t, 1, "another administrator has to approve this")
	id := regexp.MustCompile(`ap-[0-9A-Za-z]+`).FindString(asked.Err)
	clitest.Run(t, clitest.Secrets, "approval", "approve", id, "--url", url).Want(t, 1, "another administrator has to decide")
	second := []string{"DIBS_URL=" + url, "DIBS_ADMIN_KEY=" + key}
	clitest.Run(t, second, "approval", "list").Want(t, 0, id, "pending", "/v1/accounts/42/deposits")
	clitest.Run(t, second, "approval", "approve", id, "--why", "checked").Want(t, 0, "done", "200")
	clitest.Run(t, second, "approval", "approve", id).Want(t, 1, "decided before")
	shown := clitest.Run(t, second, "account", "show", "42", "--output", "json")
	if shown.Want(t, 0); !strings.Contains(shown.Out, "500") {
		t.Errorf("the account: %s", shown.Out)
	}
	clitest.Run(t, clitest.Secrets, "config", "check", "--approve", "nothing").Want(t, 2, "approve (flag --approve)")
}
