package remote_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestTokenRevoke ends a user's tokens by the verb: a token from before is refused at once, and
// counts again when that is taken back.
func TestTokenRevoke(t *testing.T) {
	env := clitest.Served(t)
	url, _ := strings.CutPrefix(env[0], "DIBS_URL=")
	clitest.Publish(t, clitest.Admin(t, url), "c", 5)
	user := clitest.User(t, url, "42")
	claim := func() error {
		_, _, err := user.Claim(t.Context(), "c", 1, "k")
		return err
	}
	if err := claim(); err != nil {
		t.Fatal(err)
	}
	made := clitest.Run(t, env, "token", "revoke", "--user", "42", "--why", "lost phone")
	made.Want(t, 0, "42", "lost phone")
	if err := claim(); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("with a revoked token: %v", err)
	}
	clitest.Run(t, env, "token", "revocations", "--output", "json").Want(t, 0, `"user_id": "42"`)
	clitest.Run(t, env, "token", "allow", regexp.MustCompile(`r-\S+`).FindString(made.Out)).Want(t, 0)
	if err := claim(); err != nil {
		t.Errorf("after it was taken back: %v", err)
	}
	clitest.Run(t, env, "token", "revoke").Want(t, 2, "--user or one --jti")
	clitest.Run(t, env, "token", "revoke", "--jti", "a", "--expires", "-1h").Want(t, 1, "--expires must be in the future")
}
