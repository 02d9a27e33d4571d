// Package monitoring_test checks the files beside it with Prometheus' own tool.
package monitoring_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPrometheusTakesThem: Prometheus would start with the configuration, and finds every
// alert of alerts.yaml.
func TestPrometheusTakesThem(t *testing.T) {
	alerts, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(alerts, []byte("- alert: "))
	if n == 0 {
		t.Fatal("alerts.yaml has no alert")
	}
	said, err := exec.CommandContext(t.Context(), "promtool", "check", "config", "prometheus.yaml").CombinedOutput()
	if want := fmt.Sprintf("SUCCESS: %d rules found\n", n); err != nil || !strings.Contains(string(said), want) {
		t.Errorf("%v, want %s%s", err, want, said)
	}
}

// TestAlertsFire: what alerts.test.yaml lets nodes show raises the alerts that it names, and
// none of them before its time.
func TestAlertsFire(t *testing.T) {
	if said, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", "alerts.test.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
