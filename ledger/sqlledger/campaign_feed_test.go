package sqlledger

import (
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

func TestChangeOf(t *testing.T) {
	for _, c := range []struct {
		before, now dibs.State
		want        events.CampaignChange
	}{
		{dibs.Draft, dibs.Published, events.CampaignPublished},
		{dibs.Published, dibs.PausedState, events.CampaignPaused},
		{dibs.PausedState, dibs.Published, events.CampaignResumed},
		{dibs.PausedState, dibs.PausedState, events.CampaignChanged},
		{dibs.Published, dibs.EndedState, events.CampaignEnded},
		{dibs.PausedState, dibs.EndedState, events.CampaignEnded},
	} {
		if got := changeOf(c.now, c.before); got != c.want {
			t.Errorf("from %s to %s: %s", c.before, c.now, got)
		}
	}
}
