package trial_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/plan"
)

// TestPlan shows a table, a document and a page.
func TestPlan(t *testing.T) {
	page := filepath.Join(t.TempDir(), "plan.html")
	r := clitest.Run(t, nil, "plan", "--users", "2e5", "--stock", "1,000", "--over", "5s", "--engine", "redis", "--html", page)
	r.Want(t, cli.ExitOK, "200,000 users", "1,000 granted", "wait of an answer", "what breaks first", "connections of a node", "calibration: embedded")
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<polyline") || !strings.Contains(string(html), "The longest wait") {
		t.Errorf("the page: %v\n%.200s", err, html)
	}
	if strings.Contains(string(html), "NaN") || strings.Contains(string(html), "http://") || strings.Contains(string(html), "https://") {
		t.Error("the page has numbers that are none, or asks for something from elsewhere")
	}
	r = clitest.Run(t, nil, "plan", "--users", "2000", "--stock", "200", "--output", "json")
	var a plan.Answer
	if err := json.Unmarshal([]byte(r.Out), &a); err != nil || a.Granted != 200 || a.Refused != 1800 || a.Question.Nodes != 1 {
		t.Errorf("%v: %.300s", err, r.Out)
	}
}

// TestPlanTooSmall ends with 1 when the target is not kept.
func TestPlanTooSmall(t *testing.T) {
	clitest.Run(t, nil, "plan", "--users", "1e6", "--stock", "1e6", "--over", "1s", "--cores", "1").
		Want(t, cli.ExitFailure, "which is not enough", "the target is not kept", "no deployment that plan tried")
}

// TestPlanFaults lists every fault of the flags at once, and says what is wrong with a
// calibration.
func TestPlanFaults(t *testing.T) {
	clitest.Run(t, nil, "plan", "--stock", "0", "--cores", "0", "--shards", "65", "--engine", "memory", "--nodes", "3").
		Want(t, cli.ExitUsage, "--users: must be", "--stock: must be", "--cores: must not be 0", "--shards: must be from", "--nodes: must be 1")
	clitest.Run(t, nil, "plan", "--users", "1", "--stock", "1", "--rounds", "5", "--requests", "9").
		Want(t, cli.ExitUsage, "--rounds: is for --measure", "--requests: is for --measure")
	clitest.Run(t, nil, "plan", "--users", "many").Want(t, cli.ExitUsage, "must be a whole number")
	clitest.Run(t, nil, "plan", "--users", "1.5").Want(t, cli.ExitUsage, "must be a whole number")
	clitest.Run(t, nil, "plan", "--users", "10", "--stock", "1", "--engine", "redis://127.0.0.1").Want(t, cli.ExitUsage, "the kind, not the address")
	with := func(text string) string { return clitest.WriteFile(t, "costs.json", text) }
	for text, want := range map[string]string{
		"nonsense":          "cannot be read",
		`{"format":99}`:     "has format 99",
		whole(t, "2020-01"): "more than a year ago",
	} {
		clitest.Run(t, nil, "plan", "--users", "10", "--stock", "1", "--calibration", with(text)).Want(t, cli.ExitUsage, want, "--measure")
	}
	clitest.Run(t, nil, "plan", "--measure", "costs.json", "--calibration", "costs.json", "--engine", "redis", "--ledger", "nowhere", "--rounds", "101", "--requests", "1999").
		Want(t, cli.ExitUsage, "plan cannot measure this", "--calibration: cannot be combined", "--engine: ", "--ledger: ", "--rounds: must be", "--requests: must be")
	clitest.Run(t, nil, "plan", "--measure", "costs.json", "--check", "--shards", "2").Want(t, cli.ExitUsage, "--shards: must be 1 for")
	clitest.Run(t, nil, "plan", "--measure", "costs.json", "--shards", "2").Want(t, cli.ExitUsage, "--shards: is for --check")
	var bare strings.Builder
	c := plan.Default()
	delete(c.Engines, plan.Memory)
	if err := c.Write(&bare); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, nil, "plan", "--check", "--calibration", with(bare.String())).Want(t, cli.ExitUsage, "need the costs of memory")
	clitest.Run(t, nil, "plan", "--check", "--calibration", with(bare.String()), "--engine", "redis://127.0.0.1:1", "--ledger", "mongodb://b").
		Want(t, cli.ExitUsage, "plan cannot check this", "--ledger: ")
	clitest.Run(t, nil, "plan", "--check", "--shards", "2", "--rounds", "0", "--requests", "2000").
		Want(t, cli.ExitUsage, "--shards: must be 1 for", "--rounds: must be", "--requests: is for --measure")
	clitest.Run(t, nil, "plan", "--check", "--shards", "65", "--engine", "redis://127.0.0.1:1").Want(t, cli.ExitUsage, "--shards: must be from 1 to 64")
	nowhere := filepath.Join(t.TempDir(), "no", "costs.json")
	clitest.Run(t, nil, "plan", "--measure", nowhere).Want(t, cli.ExitUsage, "--measure: open "+nowhere)
	bare.Reset()
	delete(c.Engines, plan.Redis)
	if err := c.Write(&bare); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, nil, "plan", "--check", "--calibration", with(bare.String()), "--engine", "redis://127.0.0.1:1", "--ledger", "mysql://u@h/d").
		Want(t, cli.ExitUsage, "need the costs of redis and mysql")
	clitest.Run(t, nil, "plan", "--users", "10", "--stock", "1", "--calibration", "nowhere").Want(t, cli.ExitUsage, "--calibration: open nowhere")
}

// whole is the embedded calibration, as if it had been taken in a month.
func whole(t *testing.T, month string) string {
	t.Helper()
	var b strings.Builder
	c := plan.Default()
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(b.String(), c.MeasuredAt.Format("2006-01"), month, 1)
}
