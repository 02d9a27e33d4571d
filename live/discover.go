package live

import (
	"context"
	"errors"
	"slices"

	"github.com/dibs-dev/dibs"
)

// discover takes up campaigns that other nodes have published or changed, and
// tries those again that could not be loaded.
func (s *Poller) discover(ctx context.Context) {
	if !s.engine.Shared() && !s.loader.admitting() {
		return
	}
	campaigns, err := s.readChanged(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.trouble.Is("campaigns", "the live campaigns could not be read", err)
		}
		return
	}
	s.trouble.Over("campaigns", "the live campaigns can be read again")
	for _, c := range campaigns {
		if l := s.registry.Live(c.ID); l != nil {
			switch old := l.Def(); {
			case old.Version < c.Version:
				if err := s.renew(ctx, l, c); err != nil && ctx.Err() == nil {
					s.log.Warn("a campaign's change could not be taken over", "campaign", c.ID, "err", err)
				}
				s.registry.Changed()
				// The node that changed it may have died before it told the engine.
				l.Wake()
			case old.Version > c.Version:
				// It was changed since the ledger was asked, or the ledger went back in time.
				s.notice(ctx, l)
			}
		}
	}
	s.loader.admitAll(ctx, campaigns)
	s.noticeEnds(ctx, campaigns)
	s.loader.forgetAdmissions(campaigns)
}

// noticeEnds reads the campaigns anew that are live on this node and not in the
// ledger any more: the node that ended one may have died before it told the engine.
func (s *Poller) noticeEnds(ctx context.Context, campaigns []*dibs.Campaign) {
	listed := make(map[uint32]bool, len(campaigns))
	for _, c := range campaigns {
		listed[c.Number] = true
	}
	for l := range s.registry.each {
		if ctx.Err() != nil {
			return
		}
		if c := l.Def(); c.Live() && !listed[c.Number] {
			s.notice(ctx, l)
		}
	}
}

// notice is readAgain that logs what it fails with.
func (s *Poller) notice(ctx context.Context, l *Campaign) {
	if _, err := s.readAgain(ctx, l); err != nil && ctx.Err() == nil {
		s.log.Warn("a campaign's change could not be read", "campaign", l.Def().ID, "err", err)
	}
}

// fewChanged is how many campaigns are read one by one; where more have changed
// all are read at once.
const fewChanged = 16

// readChanged returns the campaigns that are live in the ledger, by number. Of
// those that are as they were nothing but the version is read. A campaign that is to be
// taken up on this node is read each time: a restock leaves the version as it is.
func (s *Poller) readChanged(ctx context.Context) ([]*dibs.Campaign, error) {
	after := s.now().Add(-retireAfter)
	versions, err := s.ledger.LiveVersions(ctx, after)
	if err != nil {
		return nil, err
	}
	known := make([]*dibs.Campaign, 0, len(versions))
	var changed []uint32
	for _, v := range versions {
		c := s.discovered[v.Number]
		if c == nil || c.Version != v.Version || s.missing(c) {
			changed = append(changed, v.Number)
			continue
		}
		known = append(known, c)
	}
	if len(changed) > fewChanged {
		if known, err = s.ledger.LiveCampaigns(ctx, after); err != nil {
			return nil, err
		}
		changed = nil
	}
	for _, number := range changed {
		c, err := s.ledger.CampaignByNumber(ctx, number)
		if errors.Is(err, dibs.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		known = append(known, c)
	}
	slices.SortFunc(known, func(a, b *dibs.Campaign) int { return int(a.Number) - int(b.Number) })
	s.discovered = make(map[uint32]*dibs.Campaign, len(known))
	for _, c := range known {
		s.discovered[c.Number] = c
	}
	return known, nil
}

// missing reports whether this node should sell a campaign and does not.
func (s *Poller) missing(c *dibs.Campaign) bool {
	l := s.registry.Live(c.ID)
	return (l == nil || l.lacksShards(c)) && s.registry.Sells(c)
}
