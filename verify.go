package dibs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Verify compares the engine with the ledger, campaign by campaign, promise by
// promise. It settles what was granted before the call first. Without ids it
// checks every campaign that was ever published.
func (s *Service) Verify(ctx context.Context, campaignIDs ...string) (*Report, error) {
	campaigns, err := s.toVerify(ctx, campaignIDs)
	if err != nil {
		return nil, err
	}
	report := &Report{OK: true, Campaigns: []CampaignReport{}}
	for _, c := range campaigns {
		r, err := s.verifyOne(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("dibs: verifying campaign %s: %w", c.ID, err)
		}
		report.OK = report.OK && r.OK
		report.Campaigns = append(report.Campaigns, *r)
	}
	return report, nil
}

func (s *Service) toVerify(ctx context.Context, ids []string) ([]*Campaign, error) {
	var campaigns []*Campaign
	for _, id := range ids {
		c, err := s.Campaign(ctx, id)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, c)
	}
	page := Page{Limit: MaxPage}
	for len(ids) == 0 {
		list, err := s.Campaigns(ctx, true, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			campaigns = append(campaigns, &list.Items[i])
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	return campaigns, nil
}

// engineCount is what the engine has of a campaign at one moment.
type engineCount struct {
	live      bool
	remaining int64
	granted   int64
	at        []Cursor
}

// verifyAttempts is how often a campaign is counted again because claims came
// in between the engine's count and the ledger's.
const verifyAttempts = 20

// verifyOne audits a campaign. Claims may go on meanwhile: the ledger is
// compared with an engine that did not move between two counts; after too many
// attempts, what the two have is compared by order alone.
func (s *Service) verifyOne(ctx context.Context, c *Campaign) (*CampaignReport, error) {
	var before, after engineCount
	var audit *CampaignAudit
	still := false
	for range verifyAttempts {
		err := s.sendCommands(ctx)
		if err != nil {
			return nil, err
		}
		if before, err = s.countEngine(ctx, c, true); err != nil {
			return nil, err
		}
		if audit, err = s.ledger.Audit(ctx, c); err != nil {
			return nil, err
		}
		if after, err = s.countEngine(ctx, c, false); err != nil {
			return nil, err
		}
		if still = sameCursors(before.at, after.at); still {
			break
		}
	}
	r := &CampaignReport{
		CampaignID: c.ID, OK: true, Stock: audit.Stock, Remaining: audit.StockLeft,
		Granted: audit.Held, Claims: audit.Claims,
	}
	r.Promises = checkPromises(audit, &after, still)
	for _, p := range r.Promises {
		r.OK = r.OK && p.Held
	}
	return r, nil
}

func sameCursors(a, b []Cursor) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// countEngine counts a campaign in the engine; settle brings the ledger up to
// that count.
func (s *Service) countEngine(ctx context.Context, c *Campaign, settle bool) (engineCount, error) {
	var n engineCount
	l, err := s.liveOf(ctx, c)
	if err != nil || l == nil {
		return n, err
	}
	n.live = true
	for _, t := range l.shards {
		st, err := s.engine.Stats(ctx, t.id)
		if errors.Is(err, ErrNotOpen) && !s.sells(c) {
			// It has left the engine, by another node.
			return engineCount{}, nil
		}
		if err != nil {
			return n, err
		}
		n.remaining += st.Remaining
		n.granted += st.Granted
		n.at = append(n.at, Cursor{Epoch: st.Head.Epoch, Seq: st.Head.Seq + uint32(st.Queued)})
		if settle {
			if err := s.settleTo(ctx, t, st.Head); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// checkPromises judges an audit beside the engine's count. exact says that
// both describe the same moment.
func checkPromises(a *CampaignAudit, e *engineCount, exact bool) []PromiseCheck {
	check := func(promise string, held bool, format string, args ...any) PromiseCheck {
		return PromiseCheck{Promise: promise, Held: held, Detail: fmt.Sprintf(format, args...)}
	}
	held := a.Held + a.QuarantinedUnits
	checks := []PromiseCheck{
		check("no oversell", held <= a.Stock && a.StockLeft >= 0,
			"%d of %d units are held, %d left", held, a.Stock, a.StockLeft),
		check("the limit holds", len(a.OverLimit) == 0, "users over the limit: %s", orNone(a.OverLimit)),
		check("a yes is kept", a.Quarantined == 0 && (!e.live || !exact || e.granted == held),
			"%s%s", e.beside("units granted", e.granted, held, exact), aside(a)),
		check("no phantom", len(a.BadItems) == 0 && a.BeyondPosition == 0,
			"items at odds with claims: %s; claims past the settled position: %d", orNone(a.BadItems), a.BeyondPosition),
		check("stock comes back once", a.Stock == a.StockLeft+a.Held+a.Withheld && len(a.BadTotals) == 0,
			"%d in stock = %d left + %d held; sums at odds with rows: %s", a.Stock, a.StockLeft, a.Held+a.Withheld, orNone(a.BadTotals)),
		check("no undersell", !e.live || !exact || e.remaining == a.StockLeft,
			"%s", e.beside("units left", e.remaining, a.StockLeft, exact)),
	}
	return checks
}

// beside says what engine and ledger have of something; what names it.
func (e *engineCount) beside(what string, engine, ledger int64, exact bool) string {
	switch {
	case !e.live:
		return fmt.Sprintf("the ledger has %d %s; the campaign has left the engine", ledger, what)
	case !exact:
		return fmt.Sprintf("claims went on while counting: engine %d %s, ledger %d", engine, what, ledger)
	}
	return fmt.Sprintf("the engine has %d %s, the ledger %d", engine, what, ledger)
}

// aside says what is in quarantine.
func aside(a *CampaignAudit) string {
	if a.Quarantined == 0 {
		return ""
	}
	return fmt.Sprintf("; in quarantine: %d, first %s", a.Quarantined, strings.Join(a.InQuarantine, "; "))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
