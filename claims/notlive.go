package claims

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// notOpenNow answers for a shard that the engine should hold and does not.
func (s *Claims) notOpenNow(ctx context.Context, l *live.Campaign, req *dibs.ClaimRequest, shard uint8) (dibs.Result, error) {
	c := l.Def()
	if !s.registry.Sells(c) {
		// The user's claim may be on any of the shards that were theirs.
		for _, id := range append(c.EarlierShardsOf(req.UserID), c.ShardOf(req.UserID)) {
			if err := s.allSettled(ctx, l.Shard(id.Shard)); err != nil {
				return dibs.Result{}, s.failed(l, dibs.Unavail(req.Effect(), err))
			}
		}
		return s.notLive(ctx, req)
	}
	l.Shard(shard).Wake()
	return dibs.Result{}, s.failed(l, dibs.Unavail(req.Effect(), dibs.ErrNotOpen))
}

// allSettled returns nil when the ledger can answer for a shard that is not open
// any more: a yes that waits in the journal is not there yet.
func (s *Claims) allSettled(ctx context.Context, t *live.Shard) error {
	end, err := s.cfg.Engine.JournalEnd(ctx, t.ID)
	if err != nil || !t.At().Before(end) {
		return err
	}
	// Another node may have settled it, and nobody tells where it is not open.
	totals, err := s.cfg.Ledger.Totals(ctx, t.ID)
	if err == nil && totals.Position.Before(end) {
		err = dibs.ErrNotOpen
	}
	return err
}

// notLive answers for campaigns that the engine does not hold: unknown
// ones, drafts, and those that have ended and left the engine, whose repeats
// the ledger answers.
func (s *Claims) notLive(ctx context.Context, req *dibs.ClaimRequest) (dibs.Result, error) {
	c, err := s.lookups.LookUp(ctx, req)
	switch {
	case errors.Is(err, dibs.ErrNotFound):
		return s.elsewhere(nil, dibs.NotFound), nil
	case err != nil:
		return dibs.Result{}, s.failedElsewhere(req.Unlooked(dibs.AsUnavailable(err, dibs.EffectNone)))
	case c.State == dibs.Draft:
		return s.elsewhere(nil, dibs.NotFound), nil
	case s.registry.Sells(c):
		// Published, but not live here: another node has published it, or it could
		// not be loaded.
		if err := s.loader.AdmitFor(ctx, c); err != nil {
			return dibs.Result{}, s.failedElsewhere(dibs.Unavail(req.Effect(), err))
		}
		if s.TokenEnded(req) {
			return dibs.Result{}, s.failedElsewhere(ErrTokenEnded)
		}
		return s.Claim(ctx, *req)
	}
	if req.Key != "" {
		free, err := s.lookups.MayLookUp(req)
		if err != nil {
			return dibs.Result{}, s.failedElsewhere(err)
		}
		defer free()
		claim, err := s.cfg.Ledger.ClaimByKey(ctx, c.Number, req.UserID, dibs.KeyHash(req.Key))
		if err == nil && (claim.Quantity != req.Quantity || req.Reference != "" && claim.Reference != req.Reference) {
			return s.elsewhere(c, dibs.KeyReused), nil
		}
		if err == nil {
			s.replayed.Add(1)
			return dibs.Result{Outcome: dibs.Granted, Replayed: true, Claim: s.Fill(c, claim), Campaign: c}, nil
		}
		if !errors.Is(err, dibs.ErrNotFound) {
			return dibs.Result{}, s.failedElsewhere(req.Unlooked(dibs.AsUnavailable(err, dibs.EffectUnknown)))
		}
		g, ok, err := s.quarantine.GrantAside(ctx, live.QuarantineFilter{Campaign: c.Number, User: req.UserID, Key: dibs.KeyHash(req.Key)})
		if err != nil {
			return dibs.Result{}, s.failedElsewhere(req.Unlooked(dibs.AsUnavailable(err, dibs.EffectUnknown)))
		}
		if ok {
			return s.replayAside(ctx, c, req, &g), nil
		}
	}
	return s.elsewhere(c, dibs.Ended), nil
}

// elsewhere counts and makes a refusal on a campaign that is not live here.
func (s *Claims) elsewhere(c *dibs.Campaign, no dibs.Reason) dibs.Result {
	s.registry.Elsewhere[no].Add(1)
	return dibs.Result{Outcome: no, Campaign: c}
}

// failedElsewhere counts an error of a claim on such a campaign.
func (s *Claims) failedElsewhere(err error) error {
	reason := dibs.Unavailable
	if e, ok := errors.AsType[*dibs.Error](err); ok {
		reason = e.Reason
	}
	s.registry.Elsewhere[reason].Add(1)
	return err
}

// replayAside answers the repeat of a claim that is in quarantine. The ledger has its
// reference; where that cannot be read now, the repeat is a yes without it.
func (s *Claims) replayAside(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest, g *dibs.Grant) dibs.Result {
	claim := s.claimOf(c, g)
	known := s.addReferences(ctx, claim) == nil
	if g.Quantity != req.Quantity || known && req.Reference != "" && claim.Reference != req.Reference {
		return s.elsewhere(c, dibs.KeyReused)
	}
	s.replayed.Add(1)
	return dibs.Result{Outcome: dibs.Granted, Replayed: true, Claim: claim, Campaign: c}
}
