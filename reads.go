package dibs

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// FindClaim returns a claim by its id, settled or not. ErrNotFound. Whose
// claim it is, the caller checks.
func (s *Service) FindClaim(ctx context.Context, id string) (*Claim, error) {
	p, err := s.ids.Decode(id)
	if err != nil {
		return nil, noSuchClaim
	}
	claim, err := s.ledger.Claim(ctx, p)
	if errors.Is(err, ErrNotFound) {
		return s.findUnsettled(ctx, p)
	}
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	c, err := s.campaignOf(ctx, p.Campaign)
	if err != nil {
		return nil, err
	}
	return s.dress(c, claim), nil
}

// findUnsettled asks the engine for a claim that the ledger does not have.
func (s *Service) findUnsettled(ctx context.Context, p Position) (*Claim, error) {
	g, ok, err := s.engine.Find(ctx, p)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	if !ok {
		// What could not be settled outlives the engine's memory of it.
		g, ok = s.grantAside(func(q *Quarantined) bool { return q.Shard == p.ShardID && q.Entry.Cursor == p.Cursor })
	}
	if !ok {
		return nil, noSuchClaim
	}
	c, err := s.campaignOf(ctx, p.Campaign)
	if err != nil {
		return nil, err
	}
	return s.claimOf(c, &g), nil
}

// campaignOf returns a campaign by its number.
func (s *Service) campaignOf(ctx context.Context, number uint32) (*Campaign, error) {
	if v, ok := s.byNumber.Load(number); ok {
		return v.(*live).campaign.Load(), nil
	}
	c, err := s.ledger.CampaignByNumber(ctx, number)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	return c, nil
}

// unsettledWait is how many unsettled claims of a user a list shows by itself;
// beyond them it waits for the settling.
const unsettledWait = DefaultPage / 2

// UserClaims lists a user's claims, newest first. A claim just granted is
// there, settled or not.
func (s *Service) UserClaims(ctx context.Context, user string, page Page) (List[Claim], error) {
	var fresh []Grant
	if page.Cursor == "" {
		var err error
		if fresh, err = s.unsettledOf(ctx, user); err != nil {
			return List[Claim]{}, err
		}
	}
	if page.Limit == 0 {
		page.Limit = DefaultPage
	}
	if len(fresh) > min(unsettledWait, page.Limit/2) {
		if err := s.settleGrants(ctx, fresh); err != nil {
			return List[Claim]{}, err
		}
		fresh = nil
	}
	page.Limit -= len(fresh)
	list, err := s.listClaims(ctx, ClaimFilter{UserID: user}, page)
	if err != nil {
		return list, err
	}
	return s.withUnsettled(ctx, list, fresh)
}

// withUnsettled puts grants in front of a list, but those that were settled
// meanwhile and are in it.
func (s *Service) withUnsettled(ctx context.Context, list List[Claim], fresh []Grant) (List[Claim], error) {
	var first []Claim
	for i := range fresh {
		g := &fresh[i]
		if slices.ContainsFunc(list.Items, func(c Claim) bool { return c.Position == g.Position }) {
			continue
		}
		c, err := s.campaignOf(ctx, g.Campaign)
		if err != nil {
			return list, err
		}
		first = append(first, *s.claimOf(c, g))
	}
	list.Items = append(first, list.Items...)
	// One campaign may be settled further than another.
	slices.SortFunc(list.Items, func(a, b Claim) int {
		return newestFirst(a.CreatedAt.UnixMilli(), b.CreatedAt.UnixMilli(), a.Position, b.Position)
	})
	return list, nil
}

// unsettledOf returns a user's grants that the ledger does not have yet,
// newest first.
func (s *Service) unsettledOf(ctx context.Context, user string) ([]Grant, error) {
	grants, err := s.engine.HoldingsOf(ctx, user)
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	grants = append(grants, s.grantsAside(user)...)
	seen := make(map[Position]bool, len(grants))
	grants = slices.DeleteFunc(grants, func(g Grant) bool {
		if seen[g.Position] {
			return true
		}
		seen[g.Position] = true
		var position Cursor
		if t := s.settlingOf(g.ShardID); t != nil {
			position = t.at()
		} else if totals, readErr := s.ledger.Totals(ctx, g.ShardID); readErr == nil {
			position = totals.Position
		} else {
			err = readErr
		}
		return !position.Before(g.Cursor) && !s.isAside(g.Position)
	})
	if err != nil {
		return nil, asUnavailable(err, EffectNone)
	}
	slices.SortFunc(grants, func(a, b Grant) int { return newestFirst(a.At, b.At, a.Position, b.Position) })
	return grants, nil
}

// newestFirst is the ledger's order, which the next page goes on in.
func newestFirst(aMS, bMS int64, a, b Position) int {
	return cmp.Or(cmp.Compare(bMS, aMS), cmp.Compare(b.Campaign, a.Campaign), cmp.Compare(b.Shard, a.Shard),
		cmp.Compare(b.Epoch, a.Epoch), cmp.Compare(b.Seq, a.Seq))
}

func (s *Service) settlingOf(id ShardID) *settling {
	v, ok := s.byNumber.Load(id.Campaign)
	if !ok || int(id.Shard) >= len(v.(*live).shards) {
		return nil
	}
	return v.(*live).shards[id.Shard]
}

// settleGrants waits until grants are settled.
func (s *Service) settleGrants(ctx context.Context, grants []Grant) error {
	for i := range grants {
		if t := s.settlingOf(grants[i].ShardID); t != nil {
			if err := s.settleTo(ctx, t, grants[i].Cursor); err != nil {
				return err
			}
		}
	}
	return nil
}

// CampaignClaims lists a campaign's claims in the order they were granted;
// what was granted before the call is settled first.
func (s *Service) CampaignClaims(ctx context.Context, campaignID string, f ClaimFilter, page Page) (List[Claim], error) {
	c, err := s.Campaign(ctx, campaignID)
	if err != nil {
		return List[Claim]{}, err
	}
	if page.Cursor == "" {
		if err := s.settleAll(ctx, c); err != nil {
			return List[Claim]{}, err
		}
	}
	f.Campaign = c.Number
	return s.listClaims(ctx, f, page)
}

// listClaims reads a page and dresses its claims.
func (s *Service) listClaims(ctx context.Context, f ClaimFilter, page Page) (List[Claim], error) {
	list, err := s.ledger.ClaimList(ctx, f, page)
	if err != nil {
		return list, asUnavailable(err, EffectNone)
	}
	return list, s.dressAll(ctx, list.Items)
}
