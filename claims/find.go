package claims

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// Find returns a claim by its id, settled or not. ErrNotFound. The caller checks that the
// claim is the user's.
func (s *Claims) Find(ctx context.Context, id string) (*dibs.Claim, error) {
	p, err := s.cfg.IDs.Decode(id)
	if err != nil {
		return nil, dibs.NoSuchClaim
	}
	claim, err := s.cfg.Ledger.Claim(ctx, p)
	if errors.Is(err, dibs.ErrNotFound) {
		return s.findUnsettled(ctx, p)
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	c, err := s.registry.GetByNumber(ctx, p.Campaign)
	if err != nil {
		return nil, err
	}
	return s.Fill(c, claim), nil
}

// findUnsettled asks the engine for a claim that the ledger does not have.
func (s *Claims) findUnsettled(ctx context.Context, p dibs.Position) (*dibs.Claim, error) {
	g, ok, err := s.cfg.Engine.Find(ctx, p)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	if !ok {
		// A grant that could not be settled outlives the engine's memory of it.
		if g, ok, err = s.quarantine.GrantAside(ctx, live.QuarantineFilter{At: p}); err != nil {
			return nil, dibs.AsUnavailable(err, dibs.EffectNone)
		}
	}
	if !ok {
		return nil, dibs.NoSuchClaim
	}
	c, err := s.registry.GetByNumber(ctx, p.Campaign)
	if err != nil {
		return nil, err
	}
	claim := s.claimOf(c, &g)
	// Without its reference the claim is there all the same.
	_ = s.addReferences(ctx, claim)
	return claim, nil
}

// maxUnsettledListed is how many unsettled claims of a user a list shows by itself;
// beyond them it waits for the settling.
const maxUnsettledListed = dibs.DefaultPage / 2

// OfUser lists a user's claims, newest first. A claim just granted is
// there, settled or not.
func (s *Claims) OfUser(ctx context.Context, user string, page dibs.Page) (dibs.List[dibs.Claim], error) {
	var fresh []dibs.Grant
	if page.Cursor == "" {
		var err error
		if fresh, err = s.UnsettledOf(ctx, user); err != nil {
			return dibs.List[dibs.Claim]{}, err
		}
	}
	page.Limit = cmp.Or(page.Limit, dibs.DefaultPage)
	if len(fresh) > min(maxUnsettledListed, page.Limit/2) {
		if err := s.SettleGrants(ctx, fresh); err != nil {
			return dibs.List[dibs.Claim]{}, err
		}
		fresh = nil
	}
	page.Limit -= len(fresh)
	list, err := s.list(ctx, dibs.ClaimFilter{UserID: user}, page)
	if err != nil {
		return list, err
	}
	return s.withUnsettled(ctx, list, fresh)
}

// withUnsettled puts grants in front of a list, but those that were settled
// meanwhile and are in it.
func (s *Claims) withUnsettled(ctx context.Context, list dibs.List[dibs.Claim], fresh []dibs.Grant) (dibs.List[dibs.Claim], error) {
	var first []dibs.Claim
	for i := range fresh {
		g := &fresh[i]
		if slices.ContainsFunc(list.Items, func(c dibs.Claim) bool { return c.Position == g.Position }) {
			continue
		}
		c, err := s.registry.GetByNumber(ctx, g.Campaign)
		if err != nil {
			return list, err
		}
		first = append(first, *s.claimOf(c, g))
	}
	some := make([]*dibs.Claim, len(first))
	for i := range first {
		some[i] = &first[i]
	}
	// As in findUnsettled.
	_ = s.addReferences(ctx, some...)
	list.Items = append(first, list.Items...)
	// One campaign may be settled further than another.
	slices.SortFunc(list.Items, func(a, b dibs.Claim) int {
		return newestFirst(a.CreatedAt.UnixMilli(), b.CreatedAt.UnixMilli(), a.Position, b.Position)
	})
	return list, nil
}

// UnsettledOf returns a user's grants that the ledger does not have yet,
// newest first.
func (s *Claims) UnsettledOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	grants, err := s.cfg.Engine.HoldingsOf(ctx, user)
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	aside, err := s.quarantine.GrantsAside(ctx, live.QuarantineFilter{User: user})
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	isAside := make(map[dibs.Position]bool, len(aside))
	for i := range aside {
		isAside[aside[i].Position] = true
	}
	grants = append(grants, aside...)
	seen := make(map[dibs.Position]bool, len(grants))
	grants = slices.DeleteFunc(grants, func(g dibs.Grant) bool {
		if seen[g.Position] {
			return true
		}
		seen[g.Position] = true
		var position dibs.Cursor
		if t := s.registry.Shard(g.ShardID); t != nil {
			position = t.At()
		} else if totals, readErr := s.cfg.Ledger.Totals(ctx, g.ShardID); readErr == nil {
			position = totals.Position
		} else {
			err = readErr
		}
		return !position.Before(g.Cursor) && !isAside[g.Position]
	})
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	slices.SortFunc(grants, func(a, b dibs.Grant) int { return newestFirst(a.At, b.At, a.Position, b.Position) })
	return grants, nil
}

// newestFirst is the ledger's order, which the next page goes on in.
func newestFirst(aMS, bMS int64, a, b dibs.Position) int {
	return cmp.Or(cmp.Compare(bMS, aMS), cmp.Compare(b.Campaign, a.Campaign), cmp.Compare(b.Shard, a.Shard),
		cmp.Compare(b.Epoch, a.Epoch), cmp.Compare(b.Seq, a.Seq))
}

// SettleGrants waits until grants are settled.
func (s *Claims) SettleGrants(ctx context.Context, grants []dibs.Grant) error {
	for i := range grants {
		if t := s.registry.Shard(grants[i].ShardID); t != nil {
			if err := s.settler.SettleTo(ctx, t, grants[i].Cursor); err != nil {
				return err
			}
		}
	}
	return nil
}

// OfCampaign lists a campaign's claims in the order they were granted;
// what was granted before the call is settled first.
func (s *Claims) OfCampaign(ctx context.Context, campaignID string, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	c, err := s.registry.Get(ctx, campaignID)
	if err != nil {
		return dibs.List[dibs.Claim]{}, err
	}
	if page.Cursor == "" {
		if err := s.settler.SettleAll(ctx, c); err != nil {
			return dibs.List[dibs.Claim]{}, err
		}
	}
	f.Campaign = c.Number
	return s.list(ctx, f, page)
}

// Luck returns how the shares of a red packet fell, with up to most of the greatest ones; what was granted before the call
// is settled first. ErrNotFound.
func (s *Claims) Luck(ctx context.Context, campaignID string, most int) (Luck, error) {
	c, err := s.registry.Get(ctx, campaignID)
	if err != nil {
		return Luck{}, err
	}
	if err := s.settler.SettleAll(ctx, c); err != nil {
		return Luck{}, err
	}
	l, err := s.cfg.Ledger.Luck(ctx, c.Number, most)
	return l, dibs.AsUnavailable(err, dibs.EffectNone)
}

// list reads a page and fills its claims.
func (s *Claims) list(ctx context.Context, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error) {
	list, err := s.cfg.Ledger.ClaimList(ctx, f, page)
	if err != nil {
		return list, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return list, s.FillAll(ctx, list.Items)
}

// Fill fills the fields of a settled claim that its row does not have.
func (s *Claims) Fill(c *dibs.Campaign, claim *dibs.Claim) *dibs.Claim {
	claim.ID = s.cfg.IDs.Encode(claim.Position)
	claim.CampaignID, claim.ProductID, claim.Kind = c.ID, c.ProductID, c.Kind
	c.OpenShares(claim)
	if c.Regular() {
		claim.CampaignID = ""
	}
	s.fillFromEvents(c, claim)
	return claim
}

// fillFromEvents fills in what a claim's events tell about other claims, and the
// end of a coupon.
func (s *Claims) fillFromEvents(c *dibs.Campaign, claim *dibs.Claim) {
	claim.ValidUntil = time.Time{}
	if c.Kind == dibs.Coupon {
		claim.ValidUntil = c.ValidUntilFor(claim)
	}
	for i := range claim.Events {
		e := &claim.Events[i]
		switch {
		case e.Other == nil:
		case e.Step == dibs.StepReplace:
			claim.ReplacedBy = s.cfg.IDs.Encode(*e.Other)
		default:
			claim.Replaces = s.cfg.IDs.Encode(*e.Other)
		}
	}
}

// FillAll is Fill for claims of any campaigns.
func (s *Claims) FillAll(ctx context.Context, claims []dibs.Claim) error {
	for i := range claims {
		c, err := s.registry.GetByNumber(ctx, claims[i].Position.Campaign)
		if err != nil {
			return err
		}
		s.Fill(c, &claims[i])
	}
	return nil
}
