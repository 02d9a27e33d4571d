//go:build soak

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/plan"
	"github.com/dibs-dev/dibs/plan/measure"
)

const (
	// mostPlanOff is how far a plan may be off.
	mostPlanOff = 0.25
	planChecks  = 5
)

// alwaysJudged are the figures that every check judges. The longest wait for the ledger is
// judged only where it is long enough to be seen.
var alwaysJudged = []string{measure.Rate, measure.P99, measure.Spent}

// TestPlanWithin holds plans against rehearsals on a machine that does nothing else:
// the middle one of five checks is within bounds for each figure, p99 too. A wait for the
// ledger counts when most of the checks judge it.
func TestPlanWithin(t *testing.T) {
	costs, errors := measuredRedis(t), map[string][]float64{}
	always := map[string]bool{}
	for range planChecks {
		for _, c := range checkOnce(t, costs) {
			for _, f := range c.Figures {
				t.Logf("%d requests on %.2f cores: %s: planned %.2f, seen %.2f, off by %.0f%%", c.Requests, c.Cores, f.Name, f.Planned, f.Seen, 100*f.Error())
				at := fmt.Sprintf("%s, %d requests", f.Name, c.Requests)
				if f.Judged {
					errors[at] = append(errors[at], math.Abs(f.Error()))
				}
				if slices.Contains(alwaysJudged, f.Name) {
					always[at] = true
				}
			}
		}
	}
	if len(always) != 3*len(alwaysJudged) {
		t.Errorf("%d figures are there that are always judged, want %d of each size: %v", len(always), len(alwaysJudged), always)
	}
	for at := range always {
		if len(errors[at]) != planChecks {
			t.Errorf("%s: judged by %d checks, not by all %d", at, len(errors[at]), planChecks)
		}
	}
	for at, of := range errors {
		slices.Sort(of)
		if off := of[len(of)/2]; off > mostPlanOff && len(of) > planChecks/2 {
			t.Errorf("%s: the plan is off by %.0f%%", at, 100*off)
		}
	}
}

// TestPlanMeasuredRedis is TestPlanMeasured with a Redis.
func TestPlanMeasuredRedis(t *testing.T) {
	costs := measuredRedis(t)
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--over", "60s", "--engine", "redis", "--ledger", "sqlite", "--calibration", costs).
		Want(t, cli.ExitOK, "500 granted", "calibration: "+costs)
}

// measuredRedis takes a calibration of this machine and of a Redis, and returns its file.
func measuredRedis(t *testing.T) string {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	costs, cal := measured(t, "--engine", redis.URL())
	if e := cal.Engines[plan.Redis]; e == nil || e.ClaimUS > 200 || e.StepUS > 2_000 || cal.Engines[plan.Memory] == nil {
		t.Errorf("the costs of Redis: %+v", e)
	}
	execute(t, nil, "plan", "--users", "20000", "--stock", "500", "--engine", "redis", "--calibration", costs).
		Want(t, cli.ExitUsage, "without the ledger mysql")
	return costs
}

// checkOnce runs dibs plan --check, whose exit code agrees with what it says.
func checkOnce(t *testing.T, costs string) (all []measure.Comparison) {
	t.Helper()
	r := lengthy(t, "plan", "--check", "--calibration", costs, "--format", "json", "--data", t.TempDir())
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 3 {
		t.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	want := cli.ExitOK
	for i := range all {
		if all[i].Worst() > mostPlanOff {
			want = cli.ExitFailure
		}
	}
	if r.Code != want {
		t.Errorf("it ended with %d, want %d: %s%s", r.Code, want, r.Out, r.Err)
	}
	return all
}
