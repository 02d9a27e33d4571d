package dibs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// live is a campaign that the engine holds.
type live struct {
	campaign atomic.Pointer[Campaign]
	shards   []*settling
	// recalled says that the campaign may be over and is held all the same.
	recalled bool
	// full is set while too much waits to be settled.
	full atomic.Bool
	// lowSince is since when the stock is known to be low, as the ledger has it.
	lowSince atomic.Int64
	// refused counts this node's answers by reason.
	refused [ReasonCount]atomic.Int64
}

// renew takes a definition over that is not older than the one known.
func (l *live) renew(c *Campaign) {
	if old := l.campaign.Load(); old.Version <= c.Version {
		l.campaign.CompareAndSwap(old, c)
	}
}

// rouse makes the campaign's shards be looked at soon.
func (l *live) rouse() {
	for _, t := range l.shards {
		t.rouse()
	}
}

var (
	noSuchCampaign = Fail(NotFound, Text{"there is no such campaign", "该活动不存在"})
	noSuchClaim    = Fail(NotFound, Text{"there is no such claim", "该领取记录不存在"})
	backlogFull    = &Error{
		Reason: Overloaded, Effect: EffectNone, RetryAfter: 1e9,
		Detail: Text{"too many claims wait to be settled", "待结算的记录过多"},
	}
	tooManyLookups = Text{"too many look-ups at once", "查询过于频繁"}
)

// Claim decides a claim request. A refusal is a Result, not an error; errors
// are *Error of InvalidRequest, Unavailable or Overloaded, the latter two with
// their Effect. When the answer is Granted, the claim is durable at the
// engine's level.
func (s *Service) Claim(ctx context.Context, req ClaimRequest) (Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	if fs := req.faults(); fs != nil {
		s.counters.elsewhere[InvalidRequest].Add(1)
		return Result{}, Invalid(fs...)
	}
	v, ok := s.lives.Load(req.CampaignID)
	if !ok {
		// A copy of its own, here and below: what is handed on to those who keep it
		// has to be collected, and most claims meet none of them.
		slow := req
		return s.claimNotLive(ctx, &slow)
	}
	l := v.(*live)
	full := l.full.Load()
	if full && req.Key == "" {
		l.refused[Overloaded].Add(1)
		return Result{}, backlogFull
	}
	c := l.campaign.Load()
	if c.Gate == nil {
		return s.ask(ctx, l, c, &req, full, nil)
	}
	gated := req
	no, refused := s.refuse(ctx, c, &gated)
	if !refused {
		return s.ask(ctx, l, c, &req, full, nil)
	}
	if req.Key == "" {
		l.refused[no.Outcome].Add(1)
		return no, nil
	}
	return s.ask(ctx, l, c, &req, full, &no)
}

// ask asks the engine. A claim that is not to be granted any more, since the
// backlog is full or a gate said no, may be the repeat of one that was.
func (s *Service) ask(ctx context.Context, l *live, c *Campaign, req *ClaimRequest, full bool, no *Result) (Result, error) {
	if s.cfg.Guard != nil {
		mark, ok := s.cfg.Guard.Enter()
		if !ok {
			l.refused[Overloaded].Add(1)
			return Result{}, Shed(req.Key != "")
		}
		// From here on it is answered, whatever comes.
		defer s.cfg.Guard.Leave(mark)
	}
	d, err := s.decide(ctx, EngineClaim{
		Shard: c.ShardOf(req.UserID), UserID: req.UserID, Quantity: req.Quantity, Key: keyHash(req.Key), OnlyRepeat: full || no != nil,
	})
	if err != nil {
		if errors.Is(err, ErrNotOpen) {
			again := *req
			return s.claimNotOpen(ctx, l, &again)
		}
		// It may be granted all the same.
		l.rouse()
		if s.engine.Shared() {
			// It may have failed on the way to where keys are looked up.
			err = req.unlooked(err)
		}
		return Result{}, s.claimFailed(l, err)
	}
	if d.Outcome == Unavailable {
		return Result{}, s.claimFailed(l, levelLost)
	}
	if d.Outcome == Overloaded && no != nil {
		l.refused[no.Outcome].Add(1)
		return *no, nil
	}
	if d.Outcome == Overloaded {
		l.refused[Overloaded].Add(1)
		return Result{}, backlogFull
	}
	if s.cfg.Ledgered && d.Outcome == Granted {
		began := time.Now()
		if err := s.intoLedger(ctx, l.shards[d.Grant.Shard], d.Grant.Position); err != nil {
			return Result{}, s.claimFailed(l, Unavail(EffectUnknown, err))
		}
		s.stages.ledger.Since(began)
	}
	r := s.resultOf(l, c, &d)
	if r.Replayed && d.Grant.Released {
		// Whether it was released or refunded, the ledger knows.
		if claim, err := s.FindClaim(ctx, r.Claim.ID); err == nil {
			r.Claim = claim
		}
	}
	return r, nil
}

// intoLedger returns when the ledger has a grant. Where an engine lost it and
// went on in a later epoch, the position passes its place without it.
func (s *Service) intoLedger(ctx context.Context, t *settling, p Position) error {
	if err := s.settleTo(ctx, t, p.Cursor); err != nil || t.at().Epoch == p.Epoch {
		return err
	}
	_, err := s.ledger.Claim(ctx, p)
	if errors.Is(err, ErrNotFound) && s.isAside(p) {
		return nil
	}
	return err
}

// claimNotOpen answers for a campaign that the engine should hold and does not.
func (s *Service) claimNotOpen(ctx context.Context, l *live, req *ClaimRequest) (Result, error) {
	c := l.campaign.Load()
	if !s.sells(c) {
		if err := s.allSettled(ctx, l.shards[c.ShardOf(req.UserID).Shard]); err != nil {
			return Result{}, s.claimFailed(l, Unavail(req.effect(), err))
		}
		return s.claimNotLive(ctx, req)
	}
	l.shards[c.ShardOf(req.UserID).Shard].rouse()
	return Result{}, s.claimFailed(l, Unavail(req.effect(), ErrNotOpen))
}

// allSettled returns nil when the ledger can answer for a shard that is not open
// any more: a yes that waits in the journal is not there yet.
func (s *Service) allSettled(ctx context.Context, t *settling) error {
	end, err := s.engine.JournalEnd(ctx, t.id)
	if err != nil || !t.at().Before(end) {
		return err
	}
	// Another node may have settled it, and nobody tells where it is not open.
	totals, err := s.ledger.Totals(ctx, t.id)
	if err == nil && totals.Position.Before(end) {
		err = ErrNotOpen
	}
	return err
}

// effect is what may have happened to a request before, while nobody can look:
// with a key it may be the repeat of a yes.
func (r *ClaimRequest) effect() Effect {
	return unlookedEffect(r.Key != "")
}

// unlookedEffect is the effect of a refused request, with a key or without, when
// nobody has looked whether it is the repeat of one that was granted.
func unlookedEffect(keyed bool) Effect {
	if keyed {
		return EffectUnknown
	}
	return EffectNone
}

// unlooked is what to answer when looking the request's key up has failed: that
// this attempt did nothing does not say that none before it did.
func (r *ClaimRequest) unlooked(err error) error {
	if r.Key == "" {
		return err
	}
	return unsure(err)
}

// unsure is an error after something that may have had an effect, or did: that the
// step which failed had none does not say that nothing happened.
func unsure(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Effect != EffectNone {
		return err
	}
	other := *e
	other.Effect = EffectUnknown
	return &other
}

// keyHash is what engines and ledgers keep of a request's key; 0 for none.
func keyHash(key string) uint64 {
	if key == "" {
		return 0
	}
	return max(hash64(key), 1)
}

// resultOf dresses an engine's decision.
func (s *Service) resultOf(l *live, c *Campaign, d *Decision) Result {
	r := Result{Outcome: d.Outcome, Replayed: d.Replayed, Remaining: d.Remaining, Campaign: c}
	switch d.Outcome {
	case Granted:
		r.Claim = s.claimOf(c, &d.Grant)
		if d.Replayed {
			s.counters.replayed.Add(1)
			break
		}
		s.counters.granted.Add(1)
		l.shards[d.Grant.Shard].rouse()
	case LimitReached:
		r.ClaimIDs = make([]string, len(d.Held))
		for i, p := range d.Held {
			r.ClaimIDs[i] = s.ids.Encode(p)
		}
		fallthrough
	default:
		l.refused[d.Outcome].Add(1)
	}
	return r
}

// claimOf is a grant as a claim that has not changed since.
func (s *Service) claimOf(c *Campaign, g *Grant) *Claim {
	status := c.InitialStatus()
	if g.Released {
		status = Released
	}
	claim := &Claim{
		Position: g.Position, ID: s.ids.Encode(g.Position), CampaignID: c.ID, ProductID: c.ProductID, Kind: c.Kind, UserID: g.UserID,
		Quantity: g.Quantity, Status: status, OrderType: FlashOrder, Items: g.Items,
		Amount: c.AmountFor(g.Quantity), PayBy: fromMS(g.PayBy), CreatedAt: fromMS(g.At),
	}
	if c.Kind == Coupon {
		claim.ValidUntil = c.ValidUntilFor(claim)
	}
	c.openShares(claim)
	return claim
}

// claimFailed counts and shapes an engine's error.
func (s *Service) claimFailed(l *live, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = Unavail(EffectUnknown, err)
	}
	l.refused[e.Reason].Add(1)
	return e
}

// claimNotLive answers for campaigns that the engine does not hold: unknown
// ones, drafts, and those that have ended and left the engine, whose repeats
// the ledger answers.
func (s *Service) claimNotLive(ctx context.Context, req *ClaimRequest) (Result, error) {
	c, err := s.lookUp(ctx, req)
	switch {
	case errors.Is(err, ErrNotFound):
		return s.elsewhere(nil, NotFound), nil
	case err != nil:
		return Result{}, s.failedElsewhere(req.unlooked(asUnavailable(err, EffectNone)))
	case c.State == Draft:
		return s.elsewhere(nil, NotFound), nil
	case s.sells(c):
		// Published, but not live here: another node has published it, or it could
		// not be loaded.
		if err := s.admitFor(ctx, c); err != nil {
			return Result{}, s.failedElsewhere(Unavail(req.effect(), err))
		}
		return s.Claim(ctx, *req)
	}
	if req.Key != "" {
		free, err := s.mayLookUp(req)
		if err != nil {
			return Result{}, s.failedElsewhere(err)
		}
		defer free()
		claim, err := s.ledger.ClaimByKey(ctx, c.Number, req.UserID, keyHash(req.Key))
		if err == nil && claim.Quantity != req.Quantity {
			return s.elsewhere(c, KeyReused), nil
		}
		if err == nil {
			s.counters.replayed.Add(1)
			return Result{Outcome: Granted, Replayed: true, Claim: s.dress(c, claim), Campaign: c}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return Result{}, s.failedElsewhere(req.unlooked(asUnavailable(err, EffectUnknown)))
		}
		if g, ok := s.grantAside(func(q *Quarantined) bool {
			return q.Shard.Campaign == c.Number && q.Entry.UserID == req.UserID && q.Entry.Key == keyHash(req.Key)
		}); ok {
			return s.replayAside(c, req, &g), nil
		}
	}
	return s.elsewhere(c, Ended), nil
}

// elsewhere counts and makes a refusal on a campaign that is not live here.
func (s *Service) elsewhere(c *Campaign, no Reason) Result {
	s.counters.elsewhere[no].Add(1)
	return Result{Outcome: no, Campaign: c}
}

// failedElsewhere counts an error of a claim on such a campaign.
func (s *Service) failedElsewhere(err error) error {
	reason := Unavailable
	var e *Error
	if errors.As(err, &e) {
		reason = e.Reason
	}
	s.counters.elsewhere[reason].Add(1)
	return err
}

// replayAside answers the repeat of a claim that is in quarantine.
func (s *Service) replayAside(c *Campaign, req *ClaimRequest, g *Grant) Result {
	if g.Quantity != req.Quantity {
		return s.elsewhere(c, KeyReused)
	}
	s.counters.replayed.Add(1)
	return Result{Outcome: Granted, Replayed: true, Claim: s.claimOf(c, g), Campaign: c}
}

// dress fills the fields of a settled claim that its row does not have.
func (s *Service) dress(c *Campaign, claim *Claim) *Claim {
	claim.ID = s.ids.Encode(claim.Position)
	claim.CampaignID, claim.ProductID, claim.Kind = c.ID, c.ProductID, c.Kind
	c.openShares(claim)
	if c.Regular() {
		claim.CampaignID = ""
	}
	s.dressLife(c, claim)
	return claim
}

// asUnavailable makes an *Error of any error; one that is already stays.
func asUnavailable(err error, effect Effect) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return Unavail(effect, err)
}
