package trial_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/lab/experiments"
)

// The verbs list, run and refuse experiments, and name the one that was meant.
func TestExperimentVerbs(t *testing.T) {
	for _, group := range []string{experiments.Redis, experiments.Cache} {
		r := clitest.Run(t, nil, "lab", group, "--list")
		for _, e := range experiments.All(group) {
			r.Want(t, 0, e.Name, e.Claim)
		}
	}
	clitest.Run(t, nil, "lab", "redis", "wacth").Want(t, 2, `there is no experiment "wacth"; did you mean watch?`)
	clitest.Run(t, nil, "lab", "redis", "watch", "--redis", "redis://127.0.0.1:1").Want(t, 2, "nothing answers as Redis at --redis")
	clitest.Run(t, nil, "lab", "redis", "watch", "no-rollback").Want(t, 0, "  seen   both read 1 and 1", "  right  with WATCH: [0] for the faster, (nil)")
	clitest.Run(t, nil, "lab", "locks", "--mistakes", "--list").Want(t, 0, "deletes-anothers")
	for _, group := range []string{experiments.Redis, experiments.Cache, experiments.Locks} {
		r := clitest.Run(t, nil, "lab", group, "--list", "--output", "json")
		var list []experiments.Result
		if err := json.Unmarshal([]byte(r.Out), &list); err != nil || len(list) != len(experiments.All(group)) || list[0].Name == "" || list[0].Claim == "" {
			t.Errorf("%s: %v: %s", group, err, r.Out)
		}
	}
	r := clitest.Run(t, nil, "lab", "cache", "incr-takes-one", "--output", "json")
	var results []experiments.Result
	if err := json.Unmarshal([]byte(r.Out), &results); err != nil || len(results) != 1 || !strings.Contains(results[0].Right, "9") {
		t.Errorf("%+v, %v", results, err)
	}
}
