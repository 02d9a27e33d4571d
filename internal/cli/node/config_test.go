package node_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestConfigPrecedence checks that flags win over the environment, that over the file,
// and that over defaults.
func TestConfigPrecedence(t *testing.T) {
	file := clitest.WriteFile(t, "dibs.yaml", "listen: 127.0.0.1:1\ndrain: 1s\nlog_level: warn\nadmin_key: "+clitest.Key+"\nurl:\n")
	env := []string{"DIBS_CONFIG=" + file, "DIBS_LISTEN=127.0.0.1:2", "DIBS_DRAIN=2s", "DIBS_LOG_FORMAT=", "DIBS_JWT_SECRET=" + clitest.Secret}
	r := clitest.Run(t, env, "config", "show", "--listen", "127.0.0.1:3", "--ledger", "sqlite:a.db")
	r.Want(t, 0)
	for _, line := range []string{
		"listen 127.0.0.1:3 flag --listen", "drain 2s env DIBS_DRAIN", "log_level warn file " + file, "log_format text default",
		"url http://127.0.0.1:8080 default", "ledger sqlite:a.db flag --ledger",
		"admin_key ******** (25 bytes) file " + file, "jwt_secret ******** (32 bytes) env DIBS_JWT_SECRET",
	} {
		if !strings.Contains(strings.Join(strings.Fields(r.Out), " ")+" ", line+" ") {
			t.Errorf("does not say %q:\n%s", line, r.Out)
		}
	}
	if strings.Contains(r.Out, clitest.Key) || strings.Contains(r.Out, clitest.Secret) {
		t.Error("a secret is shown")
	}
	r = clitest.Run(t, env, "config", "show", "--output", "json")
	r.Want(t, 0, `"from": "env DIBS_LISTEN"`)
}

// TestConfigNotes checks the doubts that do not stop anything.
func TestConfigNotes(t *testing.T) {
	file := clitest.WriteFile(t, "dibs.yaml", "admin_key: "+clitest.Key+"\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"DIBS_JWT_SECRET=" + clitest.Secret, "DIBS_LISTNE=x", "DIBS_SERVICE_HOST=10.0.0.1"}
	r := clitest.Run(t, env, "config", "check", "--config", file)
	r.Want(t, 0, "DIBS_LISTNE is no setting; did you mean DIBS_LISTEN?", "can be read by others: chmod 600", "the settings are good")
	broker := clitest.WriteFile(t, "dibs.yaml", "events: nats://hush@127.0.0.1:4222/dibs\nadmin_key: "+clitest.Key+"\n")
	if err := os.Chmod(broker, 0o644); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, env, "config", "check", "--config", broker).Want(t, 0, broker+" holds events and can be read by others")
	if strings.Contains(r.Err, "DIBS_SERVICE_HOST") {
		t.Errorf("a variable of somebody else is told:\n%s", r.Err)
	}
	clitest.Run(t, env, "config", "check", "--config", file, "--output", "json").Want(t, 0, `"ok": true`, `"faults": []`, "did you mean DIBS_LISTEN?")
	clitest.Run(t, append(env, "DIBS_DRAIN=soon"), "config", "check", "--config", file, "--output", "json").Want(t, 2, `"ok": false`, `"key": "drain"`, `"from": "env DIBS_DRAIN"`)
}
