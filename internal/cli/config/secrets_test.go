package config_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestHumanSecret checks that a voucher of the human check cannot pass as a token.
func TestHumanSecret(t *testing.T) {
	const other = "a secret of the check, 32 bytes and more"
	file := clitest.WriteFile(t, "secrets.txt", other+"\n")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"short":               {[]string{"--human-secret", "short"}, "human_secret (flag --human-secret): must be at least 32 bytes, this one has 5"},
		"that of the tokens":  {[]string{"--human-secret", clitest.Secret}, "human_secret (flag --human-secret): must be another secret than those of users' tokens"},
		"one of the file's":   {[]string{"--human-secret", other, "--jwt-secret-file", file}, "human_secret (flag --human-secret): must be another secret"},
		"a file not readable": {[]string{"--human-secret", other, "--jwt-secret-file", file + "x"}, "jwt_secret_file (flag --jwt-secret-file): cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			r := clitest.Run(t, clitest.Secrets, append([]string{"config", "check"}, c.args...)...)
			r.Want(t, 2, "1 setting is wrong", c.want)
			if strings.Contains(r.Err, clitest.Secret) || strings.Contains(r.Err, other) {
				t.Errorf("a secret is told:\n%s", r.Err)
			}
		})
	}
	clitest.Run(t, clitest.Secrets, "config", "check", "--human-secret", other).Want(t, 0, "the settings are good")
}
