package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// twoDeployments is an engine of two deployments, of which the second is away. It grants
// what it is asked for, and has granted already what has the key 7.
type twoDeployments struct{ dibs.Engine }

var errAway = errors.New("away")

func (e *twoDeployments) Claim(_ context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	if req.OnlyRepeat && req.Key != 7 {
		return dibs.Decision{Outcome: dibs.Overloaded}, nil
	}
	return dibs.Decision{Outcome: dibs.Granted, Replayed: req.Key == 7}, nil
}

func (e *twoDeployments) Ping(context.Context) error  { return nil }
func (e *twoDeployments) Close(context.Context) error { return nil }

func (e *twoDeployments) Abilities() dibs.Abilities {
	return dibs.Abilities{
		Level: func() (string, []dibs.Finding) {
			return dibs.LevelNone, []dibs.Finding{{Standing: dibs.StandingOK, Subject: "maxmemory-policy"}}
		},
		Deployments: func(context.Context) map[int]error { return map[int]error{1: nil, 2: errAway} },
	}
}

// TestCommittedEngine: while the database would lose what it commits, only repeats are
// granted, and no deployment can decide claims; so it stays while the database does not
// answer. A node that was told to warn grants all the same. What the engine itself says
// stays as it is.
func TestCommittedEngine(t *testing.T) {
	for _, warn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { committed(t, warn) })
	}
}

func committed(t *testing.T, warn bool) {
	fine := dibs.Finding{Standing: dibs.StandingOK, Subject: "fsync", Found: "on"}
	lost := dibs.Finding{Standing: dibs.StandingFail, Subject: "fsync", Found: "off", Wanted: "on"}
	answers := make(chan func() ([]dibs.Finding, error), 1)
	next := func(found dibs.Finding, err error) {
		answers <- func() ([]dibs.Finding, error) { return []dibs.Finding{found}, err }
	}
	next(fine, nil)
	e := watchCommits(t.Context(), &twoDeployments{}, func(context.Context) ([]dibs.Finding, error) { return (<-answers)() }, warn, slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		found dibs.Finding
		err   error
		lost  bool
	}{{fine, nil, false}, {lost, nil, true}, {fine, errAway, true}, {lost, nil, true}, {fine, nil, false}} {
		next(step.found, step.err)
		<-time.After(askEvery)
		synctest.Wait()
		refused := step.lost && !warn
		for key, repeat := range map[uint64]bool{0: false, 1: false, 7: true} {
			want := dibs.Granted
			if refused && !repeat {
				want = dibs.Unavailable
			}
			if d, err := e.Claim(t.Context(), dibs.EngineClaim{Key: key}); err != nil || d.Outcome != want {
				t.Errorf("%+v, warn %v: a claim with key %d is %s, %v, want %s", step, warn, key, d.Outcome, err, want)
			}
		}
		if d, err := e.Claim(t.Context(), dibs.EngineClaim{Key: 1, OnlyRepeat: true}); err != nil || d.Outcome != dibs.Overloaded {
			t.Errorf("%+v, warn %v: what asks for a repeat alone is %s, %v", step, warn, d.Outcome, err)
		}
		if err := e.Ping(t.Context()); errors.Is(err, errForgetful) != refused {
			t.Errorf("%+v, warn %v: ping says %v", step, warn, err)
		}
		all := e.Abilities().Deployments(t.Context())
		if errors.Is(all[1], errForgetful) != refused || errors.Is(all[2], errForgetful) != refused || !errors.Is(all[2], errAway) {
			t.Errorf("%+v, warn %v: the deployments say %v", step, warn, all)
		}
		level, found := e.Abilities().Level()
		if level != dibs.LevelNone || len(found) != 2 || !found[0].OK() || found[1].OK() == step.lost {
			t.Errorf("%+v, warn %v: the level is %s by %v", step, warn, level, found)
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
