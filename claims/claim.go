package claims

import (
	"context"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// Claim decides a claim request. A refusal is a Result, not an error; errors
// are *Error of InvalidRequest, Unauthenticated (the token ended in a queue),
// Unavailable or Overloaded; the last two have an Effect. When the answer is
// Granted, the claim is durable at the engine's level.
func (s *Claims) Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	if fs := req.Faults(); fs != nil {
		s.registry.Elsewhere[dibs.InvalidRequest].Add(1)
		return dibs.Result{}, dibs.Invalid(fs...)
	}
	l := s.registry.Live(req.CampaignID)
	if l == nil {
		// A copy, here and below: a request whose pointer escapes is put on the heap,
		// and most claims take neither way.
		slow := req
		return s.notLive(ctx, &slow)
	}
	full := l.IsFull()
	if full && req.Key == "" {
		l.CountRefusal(dibs.Overloaded)
		return dibs.Result{}, backlogFull
	}
	c := l.Def()
	if c.Gate == nil {
		r, err := s.ask(ctx, l, c, &req, full, nil)
		if dry, is := dryOf(err); is {
			again := req
			return s.dryShard(ctx, l, c, &again, dry)
		}
		return r, err
	}
	gated := req
	no, refused := s.refusedByGate(ctx, c, &gated)
	if !refused && s.TokenEnded(&gated) {
		l.CountRefusal(dibs.Unauthenticated)
		return dibs.Result{}, ErrTokenEnded
	}
	if !refused {
		r, err := s.ask(ctx, l, c, &req, full, nil)
		if dry, is := dryOf(err); is {
			return s.dryShard(ctx, l, c, &gated, dry)
		}
		return r, err
	}
	if req.Key == "" {
		l.CountRefusal(no.Outcome)
		return no, nil
	}
	return s.ask(ctx, l, c, &req, full, &no)
}

// ask asks the engine. A claim that is not to be granted any more, since the
// backlog is full or a gate said no, may be the repeat of one that was. An errShardDry
// names the user's shard when it has too little left, and there are others.
func (s *Claims) ask(ctx context.Context, l *live.Campaign, c *dibs.Campaign, req *dibs.ClaimRequest, full bool, no *dibs.Result) (dibs.Result, error) {
	if s.cfg.Guard != nil {
		mark, ok := s.cfg.Guard.Enter()
		if !ok {
			l.CountRefusal(dibs.Overloaded)
			return dibs.Result{}, dibs.Shed(req.Key != "")
		}
		// From here on it is answered, whatever comes.
		defer s.cfg.Guard.Leave(mark)
	}
	d, shard, err := s.decideWhere(ctx, c, dibs.EngineClaim{
		Shard: c.ShardOf(req.UserID), UserID: req.UserID, Quantity: req.Quantity, Key: dibs.KeyHash(req.Key), Reference: req.Reference,
		OnlyRepeat: full || no != nil, Shards: c.Shards,
	})
	if err != nil {
		if errors.Is(err, dibs.ErrNotOpen) {
			again := *req
			return s.notOpenNow(ctx, l, &again, shard)
		}
		if errors.Is(err, dibs.ErrStale) {
			// The key was not looked up.
			return dibs.Result{}, s.failed(l, req.Unlooked(beingSpread))
		}
		// It may be granted all the same.
		l.Wake()
		if s.cfg.Engine.Shared() {
			// It may have failed on the way to where keys are looked up.
			err = req.Unlooked(err)
		}
		return dibs.Result{}, s.failed(l, err)
	}
	if d.Outcome == dibs.Unavailable {
		return dibs.Result{}, s.failed(l, notNow(l))
	}
	if d.Outcome == dibs.Overloaded && no != nil {
		l.CountRefusal(no.Outcome)
		return *no, nil
	}
	if d.Outcome == dibs.Overloaded {
		l.CountRefusal(dibs.Overloaded)
		return dibs.Result{}, backlogFull
	}
	if d.Outcome == dibs.SoldOut && c.Shards > 1 {
		return dibs.Result{}, errShardDry(shard)
	}
	if s.cfg.Ledgered && d.Outcome == dibs.Granted {
		began := time.Now()
		if err := s.intoLedger(ctx, l.Shard(d.Grant.Shard), d.Grant.Position); err != nil {
			return dibs.Result{}, s.failed(l, dibs.Unavail(dibs.EffectUnknown, err))
		}
		s.ledgerTimes.Since(began)
	}
	r := s.resultOf(l, c, &d)
	if r.Replayed && d.Grant.Released {
		// Whether it was released or refunded, the ledger knows.
		if claim, err := s.Find(ctx, r.Claim.ID); err == nil {
			r.Claim = claim
		}
	}
	if req.Reference != "" && r.Outcome == dibs.Granted {
		r = s.refer(ctx, c, req.Reference, r)
	}
	return r, nil
}

// notNow is why the engine grants nothing of a campaign just now.
func notNow(l *live.Campaign) error {
	for _, t := range l.Shards {
		if st := t.Seen(); st != nil && st.Uncounted != 0 {
			return uncounted
		}
	}
	return LevelLost
}

// TokenEnded reports whether the token of a claim that has waited has ended, or was revoked, since the caller checked it.
// It is asked after each wait, right before the claim is decided; a claim that waits for nothing does without.
func (s *Claims) TokenEnded(req *dibs.ClaimRequest) bool {
	if req.Until.IsZero() && req.TokenID == "" && req.Issued.IsZero() {
		// It came without a token, from a program that uses the library.
		return false
	}
	return !req.Until.IsZero() && !time.Now().Before(req.Until) || s.cfg.Revoked != nil && s.cfg.Revoked(req.UserID, req.TokenID, req.Issued)
}

// refusedByGate asks the gates of a campaign that has some.
func (s *Claims) refusedByGate(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (no dibs.Result, refused bool) {
	if sampled() {
		defer s.gateTimes.Since(time.Now())
	}
	for _, g := range s.cfg.Gates {
		if r, ok := g.Pass(ctx, c, req); !ok {
			r.Campaign = c
			return r, true
		}
	}
	return no, false
}

// decideWhere asks the engine, and returns the shard that has decided, or that could
// not. Where a campaign has more shards than it began with, a user may be on one from
// before: each of those is asked first, and decides for the users that it knows.
func (s *Claims) decideWhere(ctx context.Context, c *dibs.Campaign, claim dibs.EngineClaim) (dibs.Decision, uint8, error) {
	if c.EarlierShards != nil {
		for _, earlier := range c.EarlierShardsOf(claim.UserID) {
			known := claim
			known.Shard, known.OnlyKnown = earlier, true
			if d, err := s.decide(ctx, known); err != nil || d.Outcome != dibs.NotFound {
				return d, earlier.Shard, err
			}
		}
	}
	d, err := s.decide(ctx, claim)
	return d, claim.Shard.Shard, err
}

// decide asks the engine, and times some of the grants.
func (s *Claims) decide(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	if !sampled() {
		return s.cfg.Engine.Claim(ctx, req)
	}
	began := time.Now()
	d, err := s.cfg.Engine.Claim(ctx, req)
	if err == nil && d.Outcome == dibs.Granted {
		s.engineTimes.Since(began)
	}
	return d, err
}

// intoLedger returns when the ledger has a grant. Where an engine lost it and
// went on in a later epoch, the position passes its place without it.
func (s *Claims) intoLedger(ctx context.Context, t *live.Shard, p dibs.Position) error {
	if err := s.settler.SettleTo(ctx, t, p.Cursor); err != nil || t.At().Epoch == p.Epoch {
		return err
	}
	_, err := s.cfg.Ledger.Claim(ctx, p)
	if !errors.Is(err, dibs.ErrNotFound) {
		return err
	}
	if aside, asideErr := s.quarantine.IsAside(ctx, p); aside || asideErr != nil {
		return asideErr
	}
	return err
}

// resultOf is the answer to an engine's decision.
func (s *Claims) resultOf(l *live.Campaign, c *dibs.Campaign, d *dibs.Decision) dibs.Result {
	r := dibs.Result{Outcome: d.Outcome, Replayed: d.Replayed, Remaining: d.Remaining, OfProduct: d.OfProduct, Campaign: c}
	switch d.Outcome {
	case dibs.Granted:
		r.Claim = s.claimOf(c, &d.Grant)
		if d.Replayed {
			s.replayed.Add(1)
			break
		}
		s.granted.Add(1)
		l.Shard(d.Grant.Shard).Wake()
	case dibs.LimitReached:
		r.ClaimIDs = make([]string, len(d.Held))
		for i, p := range d.Held {
			r.ClaimIDs[i] = s.cfg.IDs.Encode(p)
		}
		fallthrough
	default:
		l.CountRefusal(d.Outcome)
	}
	return r
}

// claimOf is a grant as a claim that has not changed since.
func (s *Claims) claimOf(c *dibs.Campaign, g *dibs.Grant) *dibs.Claim {
	status := c.InitialStatus()
	if g.Released {
		status = dibs.Released
	}
	claim := &dibs.Claim{
		Position: g.Position, ID: s.cfg.IDs.Encode(g.Position), CampaignID: c.ID, ProductID: c.ProductID, Kind: c.Kind, UserID: g.UserID,
		Quantity: g.Quantity, Status: status, OrderType: dibs.FlashOrder, Items: g.Items,
		Amount: c.AmountFor(g.Quantity), PayBy: dibs.FromMS(g.PayBy), CreatedAt: dibs.FromMS(g.At), UpdatedAt: dibs.FromMS(g.At),
	}
	if c.Kind == dibs.Coupon {
		claim.ValidUntil = c.ValidUntilFor(claim)
	}
	c.OpenShares(claim)
	return claim
}

// failed counts and shapes an engine's error.
func (s *Claims) failed(l *live.Campaign, err error) error {
	e, ok := errors.AsType[*dibs.Error](err)
	if !ok {
		e = dibs.Unavail(dibs.EffectUnknown, err)
	}
	l.CountRefusal(e.Reason)
	return e
}
