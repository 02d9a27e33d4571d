package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/plan"
)

// TestPlanMeasured takes a calibration of this machine and of a Redis, and plans with
// it. How far the plan is off, the long campaigns judge: it is a matter of time, and a
// machine that others use too gives other times from one minute to the next.
func TestPlanMeasured(t *testing.T) { measured(t) }

// measured takes a calibration and returns its file.
func measured(t *testing.T) string {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	costs, data := filepath.Join(t.TempDir(), "costs.json"), t.TempDir()
	lengthy(t, "plan", "--measure", costs, "--engine", redis.URL(), "--data", data, "--output", "json").
		Want(t, cli.ExitOK, "redis with sqlite: grants", `"measured_at": "`)
	file, err := os.Open(costs)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cal, err := plan.Read(file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if e := cal.Engines[plan.Redis]; e == nil || e.ClaimUS > 200 || e.StepUS > 2_000 || cal.Engines[plan.Memory] == nil {
		t.Errorf("the costs of Redis: %+v", e)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v, %v", left, err)
	}
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--over", "60s", "--engine", "redis", "--ledger", "sqlite", "--calibration", costs).
		Want(t, cli.ExitOK, "500 granted", "calibration: "+costs)
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--engine", "redis", "--calibration", costs).
		Want(t, cli.ExitUsage, "without the ledger mysql")
	return costs
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
