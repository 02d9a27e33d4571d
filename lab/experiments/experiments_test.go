package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// The test is also the process that experiments kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := Work(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// worker is the command of that process.
func worker(t *testing.T) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{program, "worker"}
}

// A worker that is not killed takes its second step, too: what an experiment shows comes of the kill.
func TestWorkersFinish(t *testing.T) {
	dir := t.TempDir()
	r, err := servers.StartRedis(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	for name, want := range map[string][3]string{
		"killed-before-message": {"9", "1", "10"}, "killed-after-message": {"9", "1", "10"}, "killed-with-sum": {"6", "0", "6"},
	} {
		b := &bench{dir: t.TempDir(), url: r.URL(), worker: worker(t)}
		e := shopping(name, "", func(s *shop) (Seen, error) {
			s.load(time.Minute)
			s.sold(name, false)
			got := [3]string{s.c.run("GET stock"), s.c.run("LLEN sales"), strconv.Itoa(s.left())}
			return Seen{}, check(got == want, "%v", got)
		})
		if r := b.try(t.Context(), &e); r.Failed != "" {
			t.Errorf("%s: %s", name, r.Failed)
		}
	}
	if err := Work(t.Context(), []string{"watch", r.URL(), dir}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("a worker of an experiment that has none")
	}
}

// Every experiment shows what it says, on a real server. A server that was given is left
// as it was found.
func TestExperiments(t *testing.T) {
	for _, group := range Groups() {
		t.Run(group, func(t *testing.T) {
			results, err := Run(t.Context(), Config{Group: group, Worker: worker(t)})
			if err != nil || len(results) != len(All(group)) {
				t.Fatalf("%d results: %v", len(results), err)
			}
			for _, r := range results {
				if strings.HasPrefix(r.Name, "keep-log-") && !strings.Contains(r.Broken, "after a power cut") {
					t.Errorf("no power was cut: %+v", r)
				}
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
