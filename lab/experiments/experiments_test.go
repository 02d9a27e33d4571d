package experiments

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/servers"
)

// Every experiment shows what it says, on a real server. A server that was given is left
// as it was found.
func TestExperiments(t *testing.T) {
	for _, group := range Groups() {
		t.Run(group, func(t *testing.T) {
			results, err := Run(t.Context(), Config{Group: group})
			if err != nil || len(results) != len(All(group)) {
				t.Fatalf("%d results: %v", len(results), err)
			}
			for _, r := range results {
				t.Logf("%s\n    %s\n  - %s\n  + %s", r.Name, r.Claim, r.Broken, r.Right)
				if r.Failed != "" || r.Skipped != "" || r.Broken == "" || r.Right == "" || r.Verdict() != "shown" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestOnAGivenServer(t *testing.T) {
	dir := t.TempDir()
	s, err := servers.StartRedis(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	results, err := Run(t.Context(), Config{Group: Redis, URL: s.URL(), Names: []string{"watch", "keep-nothing", "none"}})
	if err != nil || len(results) != 2 || results[0].Verdict() != "shown" || results[1].Verdict() != "left out" {
		t.Errorf("%+v, %v", results, err)
	}
	c, err := dial(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if n := c.run("DBSIZE"); n != "0" {
		t.Errorf("%s keys are left", n)
	}
	// Data of others is not touched.
	c.run("SET mine 1")
	if _, err := Run(t.Context(), Config{Group: Locks, URL: s.URL()}); !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "holds 1 keys") {
		t.Errorf("a database with keys: %v", err)
	}
	if got := c.run("GET mine"); got != "1" {
		t.Errorf("the key is %s", got)
	}
	s.Kill()
	if _, err := Run(t.Context(), Config{Group: Locks, URL: s.URL()}); !errors.Is(err, ErrNoServer) {
		t.Errorf("a server that is away: %v", err)
	}
}

// An experiment fails when it does not show its point, and names what was seen.
func TestWhatIsNotShownFails(t *testing.T) {
	if err := check(false, "the stock is %d", 3); err == nil || err.Error() != "not shown: the stock is 3" {
		t.Errorf("%v", err)
	}
	r := Result{Failed: "x"}
	if r.Verdict() != "NOT SHOWN" {
		t.Errorf("%s", r.Verdict())
	}
	names := map[string]bool{}
	for _, group := range Groups() {
		for _, e := range All(group) {
			if names[e.Name] || e.Claim == "" || e.Group != group {
				t.Errorf("%s: twice, without a claim, or of another group", e.Name)
			}
			names[e.Name] = true
		}
	}
	if All("none") != nil || slices.Contains(Groups(), "") {
		t.Error("there are groups that are none")
	}
}
