package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/settings"
)

// read runs a verb that loads settings, and returns them and what the verb wrote.
func read(t *testing.T, rules []Rule, environ []string, args ...string) (c *Config, text string) {
	t.Helper()
	verb := &cobra.Command{Use: "look", RunE: func(cmd *cobra.Command, _ []string) (err error) {
		c, err = Load(cmd, rules...)
		return err
	}}
	AddFlags(verb, ServerKeys, CallKeys)
	var out bytes.Buffer
	call := cli.Invocation{Args: append([]string{"look"}, args...), Environ: environ, Out: &out, Err: &out}
	call.Run(t.Context(), cli.Root(cli.Build{}, cli.Group{Title: "Verbs:", Verbs: []*cobra.Command{verb}}))
	return c, out.String()
}

// TestLoad takes each setting from the strongest source, and knows the source.
func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dibs.yaml")
	if err := os.WriteFile(file, []byte("drain: 3s\nlisten: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{FileEnv + "=" + file, "DIBS_LISTEN=127.0.0.1:2", "DIBS_URL=http://env"}
	c, text := read(t, nil, environ, "--listen", "127.0.0.1:3")
	if text != "" || c.Listen != "127.0.0.1:3" || c.Drain.String() != "3s" || c.URL != "http://env" || c.LogFormat != "text" {
		t.Fatalf("%+v, %s", c, text)
	}
	for key, want := range map[string][2]bool{"listen": {true, true}, "url": {true, false}, "drain": {true, false}, "log_format": {false, false}} {
		if c.Given(key) != want[0] || c.ByFlag(key) != want[1] {
			t.Errorf("%s: given %v, by flag %v, want %v", key, c.Given(key), c.ByFlag(key), want)
		}
	}
	if f := c.Fault("drain", "is bad"); f.String() != "drain (file "+file+"): is bad" {
		t.Errorf("%s", f)
	}
	if f := c.Fault("tls_key", "is bad"); f.String() != "tls_key (not set: --tls-key or DIBS_TLS_KEY): is bad" {
		t.Errorf("%s", f)
	}
}

// TestLoadRefuses lists the faults of values and of rules, each setting once.
func TestLoadRefuses(t *testing.T) {
	rule := func(c *Config) []settings.Fault {
		return []settings.Fault{c.Fault("drain", "is never right"), c.Fault("data", "is wrong")}
	}
	_, text := read(t, []Rule{rule}, []string{"DIBS_DRAIN=soon"})
	if want := "look cannot run with these settings:\n  drain (env DIBS_DRAIN): must be a duration such as 10s or 1m30s, not \"soon\"\n  data (not set"; !strings.Contains(text, want) || strings.Contains(text, "never right") {
		t.Errorf("%s", text)
	}
	_, text = read(t, nil, []string{"DIBS_LOG_LEVEL=wran"})
	if want := `must be debug, info, warn or error, not "wran"; did you mean warn?`; !strings.Contains(text, want) {
		t.Errorf("nothing says %s:\n%s", want, text)
	}
	if _, text = read(t, nil, nil, "--config", "nowhere.yaml"); !strings.Contains(text, "config file: open nowhere.yaml") {
		t.Errorf("%s", text)
	}
}
