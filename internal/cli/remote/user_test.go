package remote_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestUser shows what is stored about a user, and erases it.
func TestUser(t *testing.T) {
	env := clitest.Served(t)
	url := strings.TrimPrefix(env[0], "DIBS_URL=")
	clitest.Publish(t, clitest.Admin(t, url), "mugs", 3)
	if _, _, err := clitest.User(t, url, "u-42").Claim(t.Context(), "mugs", 1, ""); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "account", "deposit", "u-42", "--amount", "500", "--ref", "transfer-1").Want(t, 0)
	clitest.Until(t, "settled", func() bool {
		return strings.Contains(clitest.Run(t, env, "user", "show", "u-42").Out, "1 of mugs")
	})
	clitest.Run(t, env, "user", "show", "u-42").Want(t, 0, "balance  5.00 CNY", "claims   1 of mugs")
	clitest.Run(t, env, "user", "show", "nobody").Want(t, 0, "nothing is stored about nobody")
	clitest.Run(t, env, "user", "erasures", "--output", "json").Want(t, 0, "[]")
	clitest.Run(t, env, "user", "erase", "u-42").Want(t, 1, "ask again with --leave-balance")
	r := clitest.Run(t, env, "user", "erase", "u-42", "--leave-balance", "--output", "json")
	r.Want(t, 0, `"user_id": "u-42"`)
	clitest.Run(t, env, "user", "erase", "u-42", "--leave-balance").Want(t, 0, "this erasure was begun before", "WAITS FOR")
	clitest.Until(t, "the erasure waits for the campaign", func() bool {
		return strings.Contains(clitest.Run(t, env, "user", "erasures", "--open").Out, "mugs")
	})
	clitest.Run(t, env, "user", "erasures", "--open").Want(t, 0, "ASKED FOR", "u-42")
	if _, _, err := clitest.User(t, url, "u-43").Claim(t.Context(), "mugs", 1, ""); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "user", "erase", "u-43").Want(t, 0, "u-43")
	if newest := clitest.Run(t, env, "user", "erasures", "--limit", "1"); strings.Contains(newest.Out, "u-42") {
		t.Errorf("one erasure: %s", newest.Out)
	} else {
		newest.Want(t, 0, "u-43", "there are more")
	}
	clitest.Run(t, env, "user", "erasures", "--limit", "0").Want(t, 2, "--limit must be at least 1")
	clitest.Run(t, env, "user", "erasures", "no-such").Want(t, 1, "not_found")
	clitest.Run(t, env, "user", "show", "u-42").Want(t, 0, "erasure")
}
