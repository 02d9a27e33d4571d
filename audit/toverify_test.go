package audit

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// raised is a ledger in which another node has given a campaign more shards.
type raised struct{ live.Ledger }

func (raised) Campaign(context.Context, string) (*dibs.Campaign, error) {
	return &dibs.Campaign{Number: 1, ID: "sale", State: dibs.Published, Shards: 4, Version: 2, EndsAt: time.Now().Add(time.Hour)}, nil
}

// TestVerifyReadsTheCampaignAnew verifies a campaign by its id which another node has just given more shards: the ledger counts
// all of them, so the engine has to be asked for all of them, too.
func TestVerifyReadsTheCampaignAnew(t *testing.T) {
	n := live.New(live.Config{Ledger: raised{}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, LedgerTimeout: time.Second, Life: t.Context()})
	known := &dibs.Campaign{Number: 1, ID: "sale", State: dibs.Published, Shards: 2, Version: 1, EndsAt: time.Now().Add(time.Hour)}
	n.Registry.Put(known, live.NewCampaign(known))
	got, err := New(Config{Live: n}).toVerify(t.Context(), []string{known.ID})
	if err != nil || len(got) != 1 || got[0].Shards != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}
