package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/plan"
)

// TestPlanMeasured takes a calibration of this machine, and plans with it. The long
// campaigns take one of a Redis, too, and judge how far the plan is off: that is a matter
// of time, and a machine that others use too gives other times from one minute to the next.
func TestPlanMeasured(t *testing.T) {
	data := t.TempDir()
	costs, cal := measured(t, "--data", data)
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v, %v", left, err)
	}
	if cal.Engines[plan.Memory] == nil || cal.Engines[plan.Redis] != nil {
		t.Errorf("the costs of engines: %+v", cal.Engines)
	}
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--over", "60s", "--engine", "memory", "--ledger", "sqlite", "--calibration", costs).
		Want(t, cli.ExitOK, "500 granted", "calibration: "+costs)
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--engine", "redis", "--ledger", "sqlite", "--calibration", costs).
		Want(t, cli.ExitUsage, "without the engine redis")
}

// measured takes a calibration with some flags, and returns its file and what is in it.
func measured(t *testing.T, args ...string) (costs string, cal *plan.Calibration) {
	t.Helper()
	costs = filepath.Join(t.TempDir(), "costs.json")
	lengthy(t, append([]string{"plan", "--measure", costs, "--rounds", "1", "--requests", "2000", "--output", "json"}, args...)...).
		Want(t, cli.ExitOK, "memory with sqlite: grants", `"measured_at": "`)
	file, err := os.Open(costs)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if cal, err = plan.Read(file, time.Now()); err != nil {
		t.Fatal(err)
	}
	return costs, cal
}

// lengthy runs the binary to its end, which may take minutes where others work too.
func lengthy(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	p := start(t, nil, args...)
	select {
	case <-p.ended:
	case <-time.After(10 * clitest.Patience):
	}
	return clitest.Result{Code: p.code(t), Out: p.out.String(), Err: p.err.String()}
}
