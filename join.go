package dibs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// admissionsAtOnce is how many campaigns are made live at the same time.
const admissionsAtOnce = 16

const (
	// joinPatience is how long someone waits for another node that loads a shard.
	joinPatience = 3 * time.Second
	joinEvery    = 30 * time.Millisecond
	// The pauses between attempts to join a shard. One that only found the engine
	// absent is made again soon. Those that cost an epoch are made every rejoinSoon,
	// so that a campaign is open soon after a fault is gone; but a shard has no more
	// than MaxEpoch epochs in its life, and when so many have failed in a row,
	// further ones become rare.
	rejoinMin  = time.Second
	rejoinSoon = 5 * time.Second
	rejoinMax  = 10 * time.Minute
	rejoinMany = 100
)

// goLive makes a campaign's shards claimable through this node.
func (s *Service) goLive(ctx context.Context, c *Campaign, l *live, pauses *rest) error {
	l.campaign.Store(c)
	l.lowSince.Store(c.LowSince.UnixMilli())
	for i := range c.Shards {
		t := newSettling(ShardID{Campaign: c.Number, Shard: uint8(i)}, l, s.cfg.Now())
		t.rest = pauses
		if err := s.join(ctx, t); err != nil {
			return err
		}
		l.shards = append(l.shards, t)
	}
	s.byNumber.Store(c.Number, l)
	s.lives.Store(c.ID, l)
	s.halts.Delete(c.ID)
	s.catalog.Add(1)
	kick(s.settleKick)
	return nil
}

// join returns when a shard is open and agrees with the ledger: another node
// has opened it, or this one does.
func (s *Service) join(ctx context.Context, t *settling) (err error) {
	defer func() {
		if errors.Is(err, ErrGap) || errors.Is(err, ErrElsewhere) {
			// What is granted here could never reach the ledger: no process grants it.
			err = errors.Join(err, s.engine.Halt(ctx, t.id))
		}
	}()
	looked := false
	for until := time.Now().Add(joinPatience); ; {
		joined, err := s.attach(ctx, t)
		if err != nil || joined {
			return err
		}
		if !looked {
			// Before the lease, for which this node may wait for ever: while history is
			// lost, every node tries again and says why.
			if _, err := s.fits(ctx, t.id); errors.Is(err, ErrGap) {
				return err
			}
			looked = true
		}
		held, err := s.takeLease(ctx, t, Cursor{})
		if err != nil {
			return err
		}
		s.hold(t, held)
		if held {
			err = s.load(ctx, t)
			if err == nil || !errors.Is(err, ErrStale) {
				return err
			}
		}
		if time.Now().After(until) || !sleep(ctx, joinEvery) {
			return Unavail(EffectNone, errors.Join(ErrNotOpen, ctx.Err()))
		}
	}
}

// attach takes over a shard that the engine holds, if what it holds continues
// what the ledger has. Where the ledger is ahead, or of another epoch, history
// was lost on one of the two sides, or somebody is loading the shard.
func (s *Service) attach(ctx context.Context, t *settling) (bool, error) {
	totals, err := s.ledger.Totals(ctx, t.id)
	if err != nil {
		return false, err
	}
	st, err := s.engine.Stats(ctx, t.id)
	if errors.Is(err, ErrNotOpen) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.Head.Epoch != totals.Epoch || st.Head.Before(totals.Position) {
		return false, nil
	}
	if totals.Position.Before(st.Settled) {
		// Another node may have settled meanwhile.
		if totals, err = s.ledger.Totals(ctx, t.id); err != nil {
			return false, err
		}
		if totals.Position.Before(st.Settled) {
			// The ledger was restored from a backup. The journal settles what it has
			// again; but the stock that came back since, or was added, the engine counts
			// and the ledger does not: it is loaded from the ledger.
			return false, nil
		}
	}
	if err := s.continues(ctx, t.id, totals.Position, st.Head); err != nil {
		return false, err
	}
	t.enter(totals.Epoch, totals.Position)
	if !s.engine.Shared() || totals.Position != st.Settled {
		held, err := s.takeLease(ctx, t, totals.Position)
		if err != nil {
			return false, err
		}
		s.hold(t, held)
	}
	t.seen.Store(&st)
	return true, nil
}

// continues returns ErrGap when the journal does not go on where the ledger
// ends: the ledger was restored from a backup that is older than what the
// journal kept. What was granted in between, nobody knows any more.
func (s *Service) continues(ctx context.Context, id ShardID, position, head Cursor) error {
	if !position.Before(head) {
		return nil
	}
	next, err := s.engine.ReadJournal(ctx, id, position, 1)
	if err != nil || len(next) > 0 && Continues(position, &next[0]) {
		return err
	}
	// It may have been settled and trimmed meanwhile.
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	if totals.Position != position {
		return Unavail(EffectNone, ErrPositionMoved)
	}
	return fmt.Errorf("shard %s: the ledger ends at %s and the journal at %s, and what follows in the journal is not what comes next: %w",
		id, position, head, ErrGap)
}

// halt takes a campaign out of service here whose journal cannot be settled any
// more: what is granted after a gap could never reach the ledger. It comes back
// when attaching to it succeeds again.
func (s *Service) halt(c *Campaign, cause error) {
	s.log.Error("a campaign is halted: its journal and its ledger do not fit together", "campaign", c.ID, "err", cause)
	s.halts.Store(c.ID, cause)
	s.dropLive(c)
}

// load brings a shard from the ledger into the engine. When the ledger and the
// journal's tail contradict each other, the tail is settled first: the entry
// that is to blame is in quarantine then, and part of the load.
func (s *Service) load(ctx context.Context, t *settling) error {
	err := s.loadOnce(ctx, t)
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	before := t.at()
	if tailErr := s.settleTail(ctx, t); tailErr != nil {
		return errors.Join(err, tailErr)
	}
	if t.at() == before {
		return err
	}
	return s.loadOnce(ctx, t)
}

// loadOnce loads a shard. A ledger that was restored from a backup knows fewer
// epochs than the journal has seen.
func (s *Service) loadOnce(ctx context.Context, t *settling) error {
	// A load costs an epoch; an engine that does not answer gets none.
	if err := s.engine.Ping(ctx); err != nil {
		return asUnavailable(err, EffectNone)
	}
	defer s.leaseWhile(ctx, t)()
	if !s.engine.Shared() {
		// No position may move between the load and the engine's reading of its
		// journal's tail. Where other nodes settle too, this cannot be had, and need
		// not: what they settle stands in the tail, which is kept longer than a load
		// takes.
		s.settling.Lock()
		defer s.settling.Unlock()
	}
	c, err := s.ledger.CampaignByNumber(ctx, t.id.Campaign)
	if err != nil {
		return err
	}
	if !s.sells(c) && !t.l.recalled {
		// It was ended meanwhile, on another node.
		t.l.renew(c)
		if s.engine.Shared() {
			// A load that was broken off may have fenced everybody off before its end.
			return s.adopt(ctx, t)
		}
		return Unavail(EffectNone, ErrNotOpen)
	}
	if s.engine.Shared() {
		// What this node has read and is settling just now, the load counts: where the
		// engine has lost it, nobody else has it any more.
		s.settling.Lock()
		s.settling.Unlock() //nolint:staticcheck // nothing is done meanwhile, it is only waited for
	}
	by, err := s.fits(ctx, t.id)
	if err != nil {
		return err
	}
	load, err := s.ledger.LoadShard(ctx, c, t.id, by)
	if err != nil {
		return err
	}
	t.rest.spend()
	if s.engine.Shared() {
		load.Stands = func(ctx context.Context) error { return s.stands(ctx, t.id, load.Epoch) }
	}
	t.enter(load.Epoch, load.Position)
	if err := s.engine.Open(ctx, c, t.id, load); err != nil {
		return err
	}
	t.l.renew(c)
	return s.overtaken(ctx, c)
}

// stands returns nil while an epoch is a shard's latest in the ledger.
func (s *Service) stands(ctx context.Context, id ShardID, epoch uint16) error {
	totals, err := s.ledger.Totals(ctx, id)
	if err == nil && totals.Epoch != epoch {
		err = ErrStale
	}
	return err
}

// overtaken makes the engine obey a change of a campaign that came while it was
// loaded by the definition before.
func (s *Service) overtaken(ctx context.Context, c *Campaign) error {
	if !s.engine.Shared() {
		return nil
	}
	now, err := s.ledger.CampaignByNumber(ctx, c.Number)
	if err != nil || now.Version == c.Version {
		return err
	}
	if err := s.engine.Configure(ctx, now); err != nil && !errors.Is(err, ErrNotOpen) {
		return err
	}
	return nil
}

// leaseWhile keeps the lease of a shard until the returned function is called:
// a large shard takes longer to load than a lease lasts.
func (s *Service) leaseWhile(ctx context.Context, t *settling) (end func()) {
	if !s.engine.Shared() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for sleep(ctx, LeaseTime/3) {
			if _, err := s.engine.Lease(ctx, t.id, Cursor{}); err != nil && ctx.Err() == nil {
				s.log.Warn("the lease of a shard that is being loaded could not be renewed", "shard", t.id.String(), "err", err)
			}
		}
	}()
	return cancel
}

// notOpen acts on a shard that the engine does not hold, or does not trust.
func (s *Service) notOpen(ctx context.Context, t *settling) {
	c := t.l.campaign.Load()
	if s.over(c) {
		// Another node has let it leave the engine.
		s.dropLive(c)
		return
	}
	if now := time.Now(); s.sells(c) || s.engine.Shared() && !now.Before(t.tailAt) {
		// What is over is not loaded, and what its journal has left is settled.
		t.tailAt = now.Add(LeaseTime)
		s.rejoin(ctx, t)
	}
}

// rejoin has a shard joined again, unless that is being done or has failed just
// now.
func (s *Service) rejoin(ctx context.Context, t *settling) {
	if !t.rest.over() || !t.joining.CompareAndSwap(false, true) {
		return
	}
	c := t.l.campaign.Load()
	if s.sells(c) {
		s.log.Warn("a shard is not open: it is loaded from the ledger", "campaign", c.ID, "shard", t.id.String())
	}
	go func() {
		defer t.joining.Store(false)
		err := s.join(ctx, t)
		again := t.rest.after(err)
		if err != nil && ctx.Err() == nil {
			if hopeless(err) {
				// Else nothing keeps what was granted from being settled.
				t.failed(err)
			}
			s.log.Error("a shard could not be loaded", "campaign", c.ID, "shard", t.id.String(), "err", err, "again_in", again)
		}
	}()
}

// sells reports whether a campaign is one that the engine has to hold.
func (s *Service) sells(c *Campaign) bool { return c.Live() && s.cfg.Now().Before(c.EndsAt) }

// rest is the pause after failed attempts, which grows.
type rest struct {
	mu    sync.Mutex
	until time.Time
	pause time.Duration
	// spent says that this attempt has cost an epoch, epochs how many those in a
	// row have.
	spent  bool
	epochs int
	// cause is why the last attempt failed; nil when it did not.
	cause error
}

// spend notes that an attempt has cost an epoch.
func (r *rest) spend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = true
}

// over reports whether it is time for another attempt.
func (r *rest) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !time.Now().Before(r.until)
}

// after notes how an attempt ended and returns the pause that follows.
func (r *rest) after(err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	spent := r.spent
	r.spent, r.cause = false, err
	switch {
	case err == nil:
		r.until, r.pause, r.epochs = time.Time{}, 0, 0
		return 0
	case spent:
		most := rejoinSoon
		if r.epochs++; r.epochs > rejoinMany {
			most = rejoinMax
		}
		r.pause = min(max(2*r.pause, rejoinMin), most)
	default:
		r.pause = rejoinMin
	}
	r.until = time.Now().Add(r.pause)
	return r.pause
}

// end ends the pause: somebody asks for another attempt at once.
func (r *rest) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

// failing returns why the last attempt failed; nil when it did not.
func (r *rest) failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// admission is one campaign's way into this node.
type admission struct {
	mu   turn
	rest rest
}

// admit makes a campaign live on this node, once for all who ask at the same
// time. After a failure others are refused for a while without another attempt.
func (s *Service) admit(ctx context.Context, c *Campaign) error {
	return s.admitAs(ctx, c, &live{})
}

// recall brings a campaign that may be over back into the engine, for a late
// payment. It leaves again as others do that are over.
func (s *Service) recall(ctx context.Context, c *Campaign) error {
	return s.admitAs(ctx, c, &live{recalled: true})
}

func (s *Service) admitAs(ctx context.Context, c *Campaign, l *live) error {
	v, _ := s.admissions.LoadOrStore(c.ID, &admission{mu: newTurn()})
	a := v.(*admission)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := s.lives.Load(c.ID); ok {
		return nil
	}
	if !a.rest.over() {
		return Unavail(EffectNone, ErrNotOpen)
	}
	err := s.goLive(ctx, c, l, &a.rest)
	if again := a.rest.after(err); err != nil {
		if ctx.Err() == nil {
			s.log.Error("a published campaign could not be loaded into the engine", "campaign", c.ID, "err", err, "again_in", again)
		}
		return asUnavailable(err, EffectUnknown)
	}
	s.admissions.Delete(c.ID)
	return nil
}

// admitFor is admit for somebody who may go away: the load, which others wait
// for and which has cost an epoch, goes on without him.
func (s *Service) admitFor(ctx context.Context, c *Campaign) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.LedgerTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.admit(s.life, c) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return Unavail(EffectNone, ctx.Err())
	}
}

// liveOf returns a campaign as it is live on this node; nil when the engine
// has no business with it.
func (s *Service) liveOf(ctx context.Context, c *Campaign) (*live, error) {
	v, ok := s.lives.Load(c.ID)
	if !ok && s.engine.Shared() && s.sells(c) {
		if err := s.admitFor(ctx, c); err != nil {
			return nil, err
		}
		v, ok = s.lives.Load(c.ID)
	}
	if !ok {
		return nil, nil
	}
	return v.(*live), nil
}

// admitAll makes campaigns live that are not yet, several at a time where that
// means to wait for other machines. The others are served when one cannot be
// loaded: its claims are refused as unavailable, and the service is not ready.
func (s *Service) admitAll(ctx context.Context, campaigns []*Campaign) {
	atOnce := 1
	if s.engine.Shared() {
		atOnce = admissionsAtOnce
	}
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, c := range campaigns {
		if _, ok := s.lives.Load(c.ID); ok || !s.sells(c) || ctx.Err() != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			// admit logs its errors, and shows them as the service's health.
			_ = s.admit(ctx, c)
		})
	}
	all.Wait()
}

// tryAgain ends the pause after a failed admission of a campaign.
func (s *Service) tryAgain(c *Campaign) {
	if v, ok := s.admissions.Load(c.ID); ok {
		v.(*admission).rest.end()
	}
}

// stranded returns why a published campaign could not be loaded; nil when all are.
func (s *Service) stranded() (err error) {
	s.admissions.Range(func(id, v any) bool {
		if err = v.(*admission).rest.failing(); err != nil {
			err = fmt.Errorf("campaign %s: %w", id, err)
		}
		return err == nil
	})
	return err
}
