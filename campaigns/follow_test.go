package campaigns

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// obeying is an engine that notes which definitions it was given, and answers with err.
type obeying struct {
	dibs.Engine
	given []int64
	err   error
}

func (*obeying) Shared() bool { return true }

func (*obeying) Halt(context.Context, dibs.ShardID) error { return nil }

func (e *obeying) Configure(_ context.Context, c *dibs.Campaign) error {
	e.given = append(e.given, c.Version)
	return e.err
}

// absent is a ledger whose shards cannot be read.
type absent struct{ live.Ledger }

var errAbsent = errors.New("the ledger is away")

func (absent) Totals(context.Context, dibs.ShardID) (live.ShardTotals, error) {
	return live.ShardTotals{}, errAbsent
}

// TestAPauseIsSentWithoutTheCampaign: a node that cannot take a campaign up tells the engine
// of a pause all the same, since other nodes sell it, and its caller that something failed.
// It sends nothing by which more would be sold.
func TestAPauseIsSentWithoutTheCampaign(t *testing.T) {
	for state, want := range map[dibs.State]int{dibs.PausedState: 1, dibs.Published: 0} {
		e := &obeying{}
		n := live.New(live.Config{Engine: e, Ledger: absent{}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, LedgerTimeout: time.Second, Life: t.Context()})
		s, _ := New(Config{Live: n, Engine: e, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		c := &dibs.Campaign{Number: 1, ID: "sale", State: state, Shards: 2, Version: 7, EndsAt: time.Now().Add(time.Hour)}
		if err := s.follow(t.Context(), c); !errors.Is(err, errAbsent) {
			t.Errorf("%s: %v", state, err)
		}
		if len(e.given) != want {
			t.Errorf("%s: the engine was given the versions %v", state, e.given)
		}
	}
}

// TestAnEndIsToldToEachShardThatIsOpen: shards that are not open sell nothing, so that the end does not wait for them for
// long. A shard that could not be told may go on selling: then the caller gets an error, also beside shards that are not open.
func TestAnEndIsToldToEachShardThatIsOpen(t *testing.T) {
	away := &live.DeploymentError{Number: 2, Cause: dibs.Unavail(dibs.EffectUnknown, errors.New("Redis is away"))}
	for what, of := range map[string]struct {
		err  error
		want error
	}{
		"all are told":                        {nil, nil},
		"the only one is not open":            {dibs.ErrNotOpen, nil},
		"none is open":                        {errors.Join(dibs.ErrNotOpen, dibs.ErrNotOpen), nil},
		"one is away":                         {errors.Join(nil, away), dibs.ErrUnavailable},
		"one is not open and another is away": {errors.Join(dibs.ErrNotOpen, away), dibs.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &obeying{err: of.err}
			n := live.New(live.Config{Engine: e, Logger: slog.New(slog.DiscardHandler), Now: time.Now, LedgerTimeout: time.Second, Life: t.Context()})
			s, _ := New(Config{Live: n, Engine: e, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
			now := time.Now()
			c := &dibs.Campaign{Number: 1, ID: "sale", State: dibs.EndedState, Shards: 2, Version: 7, EndsAt: now.Add(time.Hour), UpdatedAt: now}
			if err := s.follow(t.Context(), c); !errors.Is(err, of.want) || len(e.given) == 0 {
				t.Errorf("%s: %v after %d tries, want %v", what, err, len(e.given), of.want)
			}
		})
	}
}
