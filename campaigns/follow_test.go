package campaigns

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// obeying is an engine that notes which definitions it was given.
type obeying struct {
	dibs.Engine
	given []int64
}

func (*obeying) Shared() bool { return true }

func (*obeying) Halt(context.Context, dibs.ShardID) error { return nil }

func (e *obeying) Configure(_ context.Context, c *dibs.Campaign) error {
	e.given = append(e.given, c.Version)
	return nil
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
