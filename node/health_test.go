package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// A node says that a backlog is nearly full before claims are refused for it, and
// that it is not any more only when it is well below.
func TestBacklogNearlyFull(t *testing.T) {
	s := wire(ServiceConfig{MaxBacklog: 1000}.WithDefaults())
	for _, step := range []struct {
		backlog int64
		want    bool
	}{{0, false}, {899, false}, {900, true}, {760, true}, {740, false}, {899, false}, {2000, true}} {
		if got := s.nearlyFull(step.backlog); got != step.want {
			t.Errorf("%d of 1000: %v, want %v", step.backlog, got, step.want)
		}
	}
}

// Health names the campaign that stands still, whatever keeps it, and nothing else of
// the error.
func TestHealthNamesTheCampaign(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"campaigns", &live.CampaignError{Campaign: "mugs", Err: errors.New("10.0.0.7: refused")}, "campaign mugs could not be loaded into the engine, or not be settled; the log says why"},
		{"settling", &live.CampaignError{Campaign: "product:pen", Err: errors.New("disk")}, "the journal of campaign product:pen cannot be settled into the ledger; the log says why"},
		{"campaigns", fmt.Errorf("loading: %w", &live.CampaignError{Campaign: "mugs", Err: dibs.ErrElsewhere}), "campaign mugs is open on another server"},
		{"campaigns", &live.CampaignError{Campaign: "mugs", Err: dibs.ErrGap}, "the ledger of campaign mugs is older than its journal"},
		{"campaigns", dibs.ErrGap, "the ledger of a campaign is older"},
		{"ledger", errors.New("10.0.0.7: refused"), "the ledger does not answer; the log says why"},
	} {
		if got := whyNotReady(c.name, c.err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %v: %q, want %q", c.name, c.err, got, c.want)
		}
	}
}
