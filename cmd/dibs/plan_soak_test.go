//go:build soak

package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/plan"
	"github.com/dibs-dev/dibs/plan/measure"
)

// mostPlanOff is how far a plan may be off.
const mostPlanOff = 0.25

// TestPlanWithin holds a plan against rehearsals of three sizes, on a machine that does nothing
// else: the middle of the rounds is within bounds for each figure, p99 too.
func TestPlanWithin(t *testing.T) {
	for _, c := range measuredAndChecked(t, measure.DefaultRounds, "--data", t.TempDir()) {
		for _, f := range c.Figures {
			t.Logf("%d requests on %.2f cores: %s: planned %.2f, seen %.2f (%.2f to %.2f), off by %.0f%%", c.Requests, c.Cores, f.Name, f.Planned, f.Seen, f.Least, f.Most, 100*f.Error())
		}
		if c.Worst() > mostPlanOff {
			t.Errorf("%d requests: the plan is off by %.0f%%", c.Requests, 100*c.Worst())
		}
	}
}

// TestPlanMeasuredRedis is TestPlanMeasured with a Redis, and rehearses on two shards of it.
func TestPlanMeasuredRedis(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	data := t.TempDir()
	costs, cal := measured(t, "--engine", redis.URL(), "--data", data)
	if e := cal.Engines[plan.Redis]; e == nil || e.ClaimUS > 200 || e.StepUS > 2_000 || cal.Engines[plan.Memory] == nil {
		t.Errorf("the costs of Redis: %+v", e)
	}
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--engine", "redis", "--calibration", costs).
		Want(t, cli.ExitUsage, "without the ledger mysql")
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--over", "60s", "--engine", "redis", "--ledger", "sqlite", "--calibration", costs).
		Want(t, cli.ExitOK, "500 granted", "calibration: "+costs)
	// Redis knows the ledger of before again.
	measuredAndChecked(t, 1, "--engine", redis.URL(), "--shards", "2", "--data", data)
}

// measuredAndChecked runs dibs plan --measure --check, whose exit code agrees with what it says
// of every figure.
func measuredAndChecked(t *testing.T, rounds int, args ...string) (all []measure.Comparison) {
	t.Helper()
	args = append([]string{"plan", "--measure", filepath.Join(t.TempDir(), "costs.json"), "--check", "--rounds", strconv.Itoa(rounds), "--format", "json"}, args...)
	r := lengthy(t, args...)
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 3 {
		t.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	want := cli.ExitOK
	for i := range all {
		if all[i].Worst() > mostPlanOff {
			want = cli.ExitFailure
		}
		// The longest wait for the ledger is judged only where it is long enough to be seen.
		judged := map[string]bool{}
		for _, f := range all[i].Figures {
			judged[f.Name] = f.Judged
		}
		if all[i].Rounds != rounds || len(judged) != 4 || !judged[measure.Rate] || !judged[measure.P99] || !judged[measure.Spent] {
			t.Errorf("of %d requests are judged, in %d rounds: %v", all[i].Requests, all[i].Rounds, judged)
		}
	}
	if r.Code != want {
		t.Errorf("it ended with %d, want %d: %s%s", r.Code, want, r.Out, r.Err)
	}
	return all
}
