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
// the error, in both languages.
func TestHealthNamesTheCampaign(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		want, zh string
	}{
		{"campaigns", &live.CampaignError{Campaign: "mugs", Err: errors.New("10.0.0.7: refused")}, "campaign mugs could not be loaded into the engine, or not be settled; the log says why", "活动 mugs 未能载入引擎，或未能结算，原因见运行日志"},
		{"settling", &live.CampaignError{Campaign: "product:pen", Err: errors.New("disk")}, "the journal of campaign product:pen cannot be settled into the ledger; the log says why", "活动 product:pen 的日志无法结算到账本，原因见运行日志"},
		{"campaigns", fmt.Errorf("loading: %w", &live.CampaignError{Campaign: "mugs", Err: dibs.ErrElsewhere}), "campaign mugs is open on another server", "活动 mugs 已在引擎的另一台服务器上打开"},
		{"campaigns", &live.CampaignError{Campaign: "mugs", Err: dibs.ErrGap}, "the ledger of campaign mugs is older than its journal", "活动 mugs 的账本比日志旧"},
		{"campaigns", dibs.ErrGap, "the ledger of a campaign is older", "有活动的账本比日志旧"},
		{"ledger", errors.New("10.0.0.7: refused"), "the ledger does not answer; the log says why", "账本没有响应，原因见运行日志"},
	} {
		if got := whyNotReady(c.name, c.err); !strings.HasPrefix(got.EN, c.want) || !strings.HasPrefix(got.ZH, c.zh) {
			t.Errorf("%s, %v: %q, want %q and %q", c.name, c.err, got, c.want, c.zh)
		}
	}
}
