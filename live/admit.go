package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// admission is one campaign's way into this node.
//
// mu is held by the one attempt to load the campaign, for as long as it takes; backoff has a
// lock of its own, so that claims and health read it meanwhile. An admission leaves the
// loader's map once its campaign is live, or not published any more and not tried for a
// while. Who takes it out holds mu: there is no second one beside an attempt.
type admission struct {
	mu      wait.Lock
	backoff backoff
	// over says that its campaign is not published any more: it keeps the pauses, for a
	// recall, and no node from being ready.
	over atomic.Bool
}

// failing returns why a published campaign could not be loaded; nil for one that was, or
// that is over.
func (a *admission) failing() error {
	if a.over.Load() {
		return nil
	}
	return a.backoff.failing()
}

// Admit makes a campaign live on this node, once for all calls at the same
// time. After a failure others are refused for a while without another attempt.
func (s *Loader) Admit(ctx context.Context, c *dibs.Campaign) error {
	if err := s.admitAs(ctx, c, &Campaign{}); err != nil || c.LimitedProduct() == "" {
		return err
	}
	if l := s.registry.Live(c.ID); l != nil {
		// Many campaigns may have to be loaded: they are not waited for without end.
		s.keepCounting(s.life, l)
		for until := time.Now().Add(OpenPatience); l.counting.Load() && time.Now().Before(until); {
			if !wait.Sleep(ctx, JoinEvery/10) {
				break
			}
		}
	}
	return nil
}

// Recall brings a campaign that may be over back into the engine, for a late
// payment. It leaves again as others do that are over.
func (s *Loader) Recall(ctx context.Context, c *dibs.Campaign) error {
	return s.admitAs(ctx, c, &Campaign{recalled: true})
}

func (s *Loader) admitAs(ctx context.Context, c *dibs.Campaign, l *Campaign) error {
	a := s.admission(c.ID)
	defer a.mu.Unlock()
	if held := s.registry.Live(c.ID); held != nil && !held.lacksShards(c) {
		s.admissions.Delete(c.ID)
		return nil
	}
	if !a.backoff.over() {
		return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	}
	err := s.goLive(ctx, c, l, &a.backoff)
	if again := a.backoff.after(err); err != nil {
		if ctx.Err() == nil {
			s.log.Error("a published campaign could not be loaded into the engine", "campaign", c.ID, "err", err, "again_in", again)
		}
		return dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	s.admissions.Delete(c.ID)
	return nil
}

// admission returns a campaign's admission, with its mu held.
func (s *Loader) admission(id string) *admission {
	for {
		v, _ := s.admissions.LoadOrStore(id, &admission{mu: wait.NewLock()})
		a := v.(*admission)
		a.mu.Lock()
		if now, ok := s.admissions.Load(id); ok && now == v {
			return a
		}
		// It was taken out meanwhile, and others go by the next one.
		a.mu.Unlock()
	}
}

// AdmitFor is Admit for a caller that may go away: the load, which others wait
// for and which has cost an epoch, goes on without it.
func (s *Loader) AdmitFor(ctx context.Context, c *dibs.Campaign) error {
	ctx, cancel := context.WithTimeout(ctx, s.ledgerTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Admit(s.life, c) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return dibs.Unavail(dibs.EffectNone, ctx.Err())
	}
}

// EnsureLive returns a campaign as it is live on this node; nil when the engine
// has no business with it. On a shared engine it loads one first that is not, and
// waits for that, for the time of one call of the ledger at most.
func (s *Loader) EnsureLive(ctx context.Context, c *dibs.Campaign) (*Campaign, error) {
	l := s.registry.Live(c.ID)
	if (l == nil || l.lacksShards(c)) && s.engine.Shared() && s.registry.Sells(c) {
		if err := s.AdmitFor(ctx, c); err != nil {
			return nil, err
		}
		l = s.registry.Live(c.ID)
	}
	return l, nil
}

// admitAll makes campaigns live that are not yet, several at a time where that
// means to wait for other machines. The others are served when one cannot be
// loaded: its claims are refused as unavailable, and the service is not ready.
func (s *Loader) admitAll(ctx context.Context, campaigns []*dibs.Campaign) {
	atOnce := 1
	if s.engine.Shared() {
		atOnce = admissionsAtOnce
	}
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, c := range campaigns {
		if l := s.registry.Live(c.ID); l != nil && !l.lacksShards(c) || !s.registry.Sells(c) || ctx.Err() != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			// Admit logs its errors, and shows them as the service's health.
			_ = s.Admit(ctx, c)
		})
	}
	all.Wait()
}

// TryAgain ends the pause after a failed admission of a campaign.
func (s *Loader) TryAgain(c *dibs.Campaign) {
	if v, ok := s.admissions.Load(c.ID); ok {
		v.(*admission).backoff.end()
	}
}

// stranded returns why a published campaign could not be loaded; nil when all are, or
// wait for deployments that are away.
func (s *Loader) stranded(away map[int]error) error {
	for id, v := range s.admissions.Range {
		if cause := v.(*admission).failing(); cause != nil && !awaits(cause, away) {
			return &CampaignError{Campaign: id.(string), Err: cause}
		}
	}
	return nil
}

// admitting reports whether a campaign is on its way into this node, or failed on it.
func (s *Loader) admitting() bool {
	for range s.admissions.Range {
		return true
	}
	return false
}

// forgetAdmissions marks failed admissions of campaigns that are not published any more: the
// node is ready without them, since their journals are settled without a load. It drops those
// that were not tried for a while. One that is under way is a recall, and stays: there may be
// no second one beside it.
func (s *Loader) forgetAdmissions(campaigns []*dibs.Campaign) {
	wanted := make(map[string]bool, len(campaigns))
	for _, c := range campaigns {
		wanted[c.ID] = s.registry.Sells(c)
	}
	for id, v := range s.admissions.Range {
		a := v.(*admission)
		if wanted[id.(string)] {
			a.over.Store(false)
			continue
		}
		if a.failing() != nil {
			a.over.Store(true)
			s.endedUnloaded.Store(true)
		}
		if a.backoff.forgotten() && a.mu.Try() {
			s.admissions.CompareAndDelete(id, v)
			a.mu.Unlock()
		}
	}
}

// goLive makes a campaign's shards claimable through this node.
func (s *Loader) goLive(ctx context.Context, c *dibs.Campaign, l *Campaign, pauses *backoff) error {
	l.campaign.Store(c)
	l.lowSince.Store(c.LowSince.UnixMilli())
	if err := s.openAll(ctx, c, l, pauses); err != nil {
		return err
	}
	before := s.registry.Live(c.ID)
	if before != nil {
		// It was held with fewer shards.
		s.registry.Drop(c)
	}
	s.registry.Put(c, l)
	s.settler.followOthers(before)
	s.halts.Delete(c.ID)
	wait.Kick(s.settler.settleKick)
	return nil
}

// openAll opens a campaign's shards, several at a time. Where some of several cannot be
// opened since their server is away, the others sell: the poll loop opens the rest when
// it answers.
func (s *Loader) openAll(ctx context.Context, c *dibs.Campaign, l *Campaign, pauses *backoff) error {
	for i := range c.Shards {
		t := newShard(dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}, l)
		if c.Shards == 1 {
			t.reload.backoff = pauses
		}
		l.Shards = append(l.Shards, t)
	}
	if c.Shards == 1 {
		return s.open(ctx, l.Shards[0])
	}
	errs := make([]error, c.Shards)
	var all sync.WaitGroup
	free := make(chan struct{}, admissionsAtOnce)
	for i, t := range l.Shards {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			// Nobody else opens it meanwhile: another shard may find that the ledger went back for it, too.
			t.reload.opening.Store(true)
			defer t.reload.end()
			errs[i] = s.open(ctx, t)
		})
	}
	all.Wait()
	for _, t := range l.Shards {
		if t.reload.backoff.hasSpent() {
			// The next attempt is made by other ones, which know of no pause.
			pauses.spend()
		}
	}
	opened := 0
	for _, err := range errs {
		if err == nil {
			opened++
		} else if !errors.Is(err, dibs.ErrUnavailable) {
			return err
		}
	}
	if opened == 0 || ctx.Err() != nil {
		return errors.Join(errs...)
	}
	for i, err := range errs {
		if err != nil {
			s.log.Warn("a shard of a campaign is away, and the others sell without it", "campaign", c.ID, "shard", l.Shards[i].ID.String(), "err", err)
		}
	}
	return nil
}

// haltedCount counts the campaigns that could not be loaded here, or not be
// settled any more.
func (s *Loader) haltedCount() int64 {
	halted := map[string]bool{}
	for id, v := range s.admissions.Range {
		if v.(*admission).failing() != nil {
			halted[id.(string)] = true
		}
	}
	for id := range s.halts.Range {
		halted[id.(string)] = true
	}
	for t := range s.registry.eachShard {
		if t.reload.backoff.failing() != nil {
			halted[t.l.Def().ID] = true
		}
	}
	return int64(len(halted))
}

// Campaigns of one product that have a limit per product share it, and the engine
// counts over those that were opened there. So while one of them is open, all that were
// ever published have to be opened once: what is over is recalled, and leaves the
// engine again, which goes on to count it.

// NoProductLimits is the fault of a limit per product on an engine that cannot count
// over campaigns.
var NoProductLimits = dibs.Fault{Field: "/limit_per_product", Problem: dibs.Text{
	EN: "is for an engine of one deployment: campaigns on several Redis deployments are not counted together",
	ZH: "仅用于单一部署的引擎：分布在多个 Redis 部署上的活动无法合并计数",
}}

// countable returns nil when the engine can count what a campaign shares.
func (s *Loader) countable(c *dibs.Campaign) error {
	if c.LimitedProduct() == "" || s.engine.Abilities().Counts != nil {
		return nil
	}
	return dibs.Unavail(dibs.EffectNone, dibs.Invalid(NoProductLimits))
}

// countEvery is how often the engine is asked again whether it counts everything.
const countEvery = 200 * time.Millisecond

// countSharing brings the campaigns into the engine that share the limit of one that is
// live here and are not counted yet. It reports whether all are counted by then.
func (s *Loader) countSharing(ctx context.Context, l *Campaign) (bool, error) {
	for _, t := range l.Shards {
		for before := uint32(0); ; {
			st, err := s.engine.Stats(ctx, t.ID)
			if err != nil {
				return false, err
			}
			if st.Uncounted == 0 {
				break
			}
			if st.Uncounted == before {
				// It is live here, and being opened again.
				return false, nil
			}
			before = st.Uncounted
			c, err := s.ledger.CampaignByNumber(ctx, before)
			if err != nil {
				return false, err
			}
			if err := s.admitAs(ctx, c, &Campaign{recalled: !s.registry.Sells(c)}); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// keepCounting calls countSharing until all are counted, for a campaign that grants
// nothing before. One call goes on at a time.
func (s *Loader) keepCounting(ctx context.Context, l *Campaign) {
	if !l.counting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer l.counting.Store(false)
		for {
			c := l.Def()
			all, err := s.countSharing(ctx, l)
			if err != nil && ctx.Err() == nil {
				s.log.Warn("a campaign grants nothing until all campaigns that share its limit per product are counted", "campaign", c.ID, "product", c.ProductID, "err", err)
			}
			if all || s.registry.Live(c.ID) != l || !wait.Sleep(ctx, countEvery) {
				return
			}
		}
	}()
}

// recallCounted brings a campaign back that is over and whose claims count for others,
// since one of them was released: its load counts them anew. False when there is
// nothing to count.
func (s *Loader) recallCounted(ctx context.Context, c *dibs.Campaign, id dibs.ShardID) (bool, error) {
	counts := s.engine.Abilities().Counts
	if c.LimitedProduct() == "" || counts == nil {
		return false, nil
	}
	counted, err := counts(ctx, id)
	if err != nil || !counted {
		return false, err
	}
	return true, s.Recall(ctx, c)
}
