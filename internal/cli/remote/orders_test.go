package remote_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestOrderSearch looks for orders from the outside.
func TestOrderSearch(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "campaign", "create", "--id", "spring", "--kind", "coupon", "--title", "Spring", "--items", "A1,A2", "--ends", "+2h", "--limit", "2",
		"--publish").Want(t, 0)
	api := clitest.User(t, strings.TrimPrefix(env[0], "DIBS_URL="), "42")
	first, _, err := api.Claim(t.Context(), "spring", 1, "k")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "claim", "list", "--campaign", "spring", "--code", "A1").Want(t, 0, first.ID, "spring", "confirmed")
	clitest.Run(t, env, "claim", "list", "--user", "42", "--type", "flash", "--since", "-1h", "--until", "+1m").Want(t, 0, first.ID)
	if r := clitest.Run(t, env, "claim", "list", "--user", "43"); strings.Contains(r.Out, first.ID) {
		t.Errorf("another user's: %s", r.Out)
	}
	if r := clitest.Run(t, env, "claim", "list", "--refund-due"); r.Code != 0 || strings.Contains(r.Out, first.ID) {
		t.Errorf("refunds due: %d %s%s", r.Code, r.Out, r.Err)
	}
	clitest.Run(t, env, "claim", "list", "--csv", "--status", "confirmed").Want(t, 0, "id,campaign_id", first.ID+",spring,coupon,42,1,confirmed,1,2,A1")
	clitest.Run(t, env, "claim", "list", "--code", "A1").Want(t, 0, first.ID, "spring")
	if r := clitest.Run(t, env, "claim", "list", "--code", "A2"); r.Code != 0 || strings.Contains(r.Out, first.ID) {
		t.Errorf("by another code: %d %s%s", r.Code, r.Out, r.Err)
	}
	clitest.Run(t, env, "claim", "list", "--status", "paid").Want(t, 2, "--status must be")
	clitest.Run(t, env, "claim", "list", "--type", "2").Want(t, 2, "--type must be")
	clitest.Run(t, env, "claim", "list", "--since", "noon").Want(t, 2, "--since must be")
	clitest.Run(t, env, "claim", "list", "--limit", "0").Want(t, 2, "--limit must be")
}
