//go:build soak

package ci_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestStagedBlocks runs the blocks of each stage. No command may fail.
func TestStagedBlocks(t *testing.T) {
	bin := filepath.Dir(compiled(t))
	redis, err := servers.StartRedis(t.TempDir(), "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	db, err := servers.MariaDB()
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(db.URL("dibs"))
	if err != nil {
		t.Fatal(err)
	}
	nats, err := servers.StartNATS(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Kill)
	shown := map[string]string{}
	for _, page := range runnable(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(string(text), "bash") {
			shown[firstLine(block)] = block
		}
	}
	t.Run("stages", func(t *testing.T) {
		for name, s := range stages {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				script := s.before + "\n"
				for _, first := range s.blocks {
					block, ok := shown[first]
					if !ok {
						t.Fatalf("no page has the block that begins with %s", first)
					}
					script += strings.NewReplacer(s.replace...).Replace(block) + "\n"
				}
				places := strings.NewReplacer("@REDIS@", redis.Addr(), "@DATABASE@", address.Host, "@NATS@", nats.Addr(),
					"@PORT@", freePort(t), "@LISTEN@", "127.0.0.1:"+freePort(t))
				runStage(t, bin, places.Replace(stageShell+script+s.after), []string{"DATABASE=" + address.Host, "PASSWORD=" + servers.Password}, s.says)
			})
		}
	})
}

// runStage runs a script with some variables, and looks for what it says.
func runStage(t *testing.T, bin, script string, env, says []string) {
	ctx, cancel := context.WithTimeout(t.Context(), pageTime)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	shell.Dir, shell.Stdin = t.TempDir(), strings.NewReader(script)
	shell.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DIBS_") || strings.HasPrefix(v, "PATH=") })
	shell.Env = append(append(shell.Env, env...), "TMPDIR="+shell.Dir, "XDG_CONFIG_HOME="+shell.Dir, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	text := string(out)
	missing := slices.DeleteFunc(slices.Clone(says), func(what string) bool { return strings.Contains(text, what) })
	if err != nil || strings.Contains(text, "FAILED: ") || len(missing) > 0 {
		t.Errorf("%v; it does not say %q:\n%s", err, missing, text)
	}
}
