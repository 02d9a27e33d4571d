package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Loader brings campaigns into the engine, from the ledger, and takes them out of
// it. Each campaign is admitted by one goroutine at a time, by its admission. All methods
// are safe for concurrent use.
type Loader struct {
	shared
	settler    *Settler
	deployment func(context.Context, dibs.ShardID) (int, error)

	// admissions are campaigns on their way into this node, or that failed.
	admissions sync.Map // string -> *admission
	// halts are the campaigns whose journal and ledger do not fit together, with what
	// was found: also those that are over, which nothing loads.
	halts     sync.Map // string -> error
	undivided undivided
	// waitsForUnits is since when the ledger lacks what left other shards for one.
	waitsForUnits sync.Map // dibs.ShardID -> time.Time
	// stuckTail is why grants of a campaign that is over could not be settled at
	// start; nil when all were.
	stuckTail atomic.Pointer[error]
	// endedUnloaded says that a campaign has ended that this node could not load, so that
	// nobody may have settled its last grants.
	endedUnloaded atomic.Bool
}

// admissionsAtOnce is how many campaigns are made live at the same time.
const admissionsAtOnce = 16

const (
	// OpenPatience is how long a caller waits for another node that loads a shard.
	OpenPatience = 3 * time.Second
	// JoinEvery is how often a node asks again while it waits so.
	JoinEvery = 30 * time.Millisecond
)

// open returns when a shard is open and agrees with the ledger: another node
// has opened it, or this one does.
func (s *Loader) open(ctx context.Context, t *Shard) (err error) {
	defer func() {
		if err == nil {
			// Another node may have opened it.
			s.waitsForUnits.Delete(t.ID)
		}
		err = s.haltFor(ctx, t, err)
	}()
	looked := false
	for until := time.Now().Add(OpenPatience); ; {
		joined, err := s.attach(ctx, t)
		if err != nil || joined {
			return err
		}
		if !looked {
			// Before the lease, for which this node may wait for ever: while history is
			// lost, every node tries again and says why.
			if _, err := s.fits(ctx, t.ID); errors.Is(err, dibs.ErrGap) {
				return err
			}
			looked = true
		}
		held, err := s.settler.takeLease(ctx, t, dibs.Cursor{})
		if err != nil {
			return err
		}
		s.settler.setSettles(t, held)
		if held {
			err = s.Load(ctx, t)
			if err == nil || !errors.Is(err, dibs.ErrStale) {
				return err
			}
		}
		if time.Now().After(until) || !wait.Sleep(ctx, JoinEvery) {
			return dibs.Unavail(dibs.EffectNone, errors.Join(dibs.ErrNotOpen, ctx.Err()))
		}
	}
}

// haltFor takes a shard out of the engine that could not be opened, where a grant could
// never reach the ledger: no process makes one then. It returns the error.
func (s *Loader) haltFor(ctx context.Context, t *Shard, err error) error {
	if errors.Is(err, dibs.ErrGap) || errors.Is(err, dibs.ErrElsewhere) {
		return errors.Join(err, s.engine.Halt(ctx, t.ID))
	}
	return err
}

// attach takes over a shard that the engine holds, if what it holds continues
// what the ledger has. Where the ledger is ahead, or of another epoch, history
// was lost on one of the two sides, or a node is loading the shard.
func (s *Loader) attach(ctx context.Context, t *Shard) (bool, error) {
	totals, err := s.ledger.Totals(ctx, t.ID)
	if err != nil {
		return false, err
	}
	st, err := s.engine.Stats(ctx, t.ID)
	if errors.Is(err, dibs.ErrNotOpen) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	answered := s.now()
	if st.Head.Epoch != totals.Epoch || st.Head.Before(totals.Position) {
		return false, nil
	}
	if st.Version > t.l.Def().Version {
		// The definition may have been changed since it was read here.
		c, err := s.ledger.CampaignByNumber(ctx, t.ID.Campaign)
		if err != nil || st.Version > c.Version {
			// The ledger was restored from a backup, without a change that the engine has.
			return false, err
		}
	}
	if totals.Position.Before(st.Settled) {
		// Another node may have settled meanwhile.
		if totals, err = s.ledger.Totals(ctx, t.ID); err != nil {
			return false, err
		}
		if totals.Position.Before(st.Settled) {
			// The ledger was restored from a backup. The journal settles what it has
			// again; but the stock that came back since, or was added, the engine counts
			// and the ledger does not: it is loaded from the ledger.
			return false, nil
		}
	}
	if err := s.continues(ctx, t.ID, totals.Position, st.Head); err != nil {
		return false, err
	}
	t.progress.enter(totals.Epoch, totals.Position)
	if !s.engine.Shared() || totals.Position != st.Settled {
		held, err := s.settler.takeLease(ctx, t, totals.Position)
		if err != nil {
			return false, err
		}
		s.settler.setSettles(t, held)
	}
	t.seen.keep(&st, answered)
	return true, nil
}

// continues returns ErrGap when the journal does not go on where the ledger
// ends: the ledger was restored from a backup that is older than what the
// journal kept. The grants in between are not known any more.
func (s *Loader) continues(ctx context.Context, id dibs.ShardID, position, head dibs.Cursor) error {
	if !position.Before(head) {
		return nil
	}
	next, err := s.engine.ReadJournal(ctx, id, position, 1)
	if err != nil || len(next) > 0 && dibs.Continues(position, &next[0]) {
		return err
	}
	// It may have been settled and trimmed meanwhile.
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	if totals.Position != position {
		return dibs.Unavail(dibs.EffectNone, dibs.ErrPositionMoved)
	}
	return fmt.Errorf("shard %s: the ledger ends at %s and the journal at %s, and what follows in the journal is not what comes next: %w",
		id, position, head, dibs.ErrGap)
}

// Follows returns nil where the ledger has what the engine and this node know to be settled of
// each shard of a campaign. Else it went back in time, or a shard is being loaded: ErrNotOpen,
// ErrPositionMoved, unavailable.
func (s *Loader) Follows(ctx context.Context, c *dibs.Campaign) error {
	for i := range c.Shards {
		id := dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}
		st, err := s.engine.Stats(ctx, id)
		if err != nil {
			return dibs.AsUnavailable(fmt.Errorf("shard %s: %w", id, err), dibs.EffectNone)
		}
		settled := st.Settled
		if t := s.registry.Shard(id); t != nil {
			if at := t.At(); settled.Before(at) {
				settled = at
			}
		}
		totals, err := s.ledger.Totals(ctx, id)
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectNone)
		}
		if totals.Epoch != st.Head.Epoch || totals.Position.Before(settled) {
			return dibs.Unavail(dibs.EffectNone, fmt.Errorf("shard %s: %w", id, dibs.ErrPositionMoved))
		}
	}
	return nil
}

// fitsUntil is continues up to a journal's end that was read before. An engine that
// was emptied, or replaced, in between has less than that: then it has not lost what
// the ledger lacks by being trimmed, and the next look tells what is so.
func (s *Loader) fitsUntil(ctx context.Context, id dibs.ShardID, position, end dibs.Cursor) error {
	err := s.continues(ctx, id, position, end)
	if !errors.Is(err, dibs.ErrGap) {
		return err
	}
	now, endErr := s.engine.JournalEnd(ctx, id)
	switch {
	case endErr != nil:
		return endErr
	case now.Before(end):
		return dibs.Unavail(dibs.EffectNone, fmt.Errorf("the journal of shard %s ended at %s and ends at %s now: %w", id, end, now, dibs.ErrPositionMoved))
	}
	return err
}

// halt takes a campaign out of service here whose journal cannot be settled any
// more: what is granted after a gap could never reach the ledger. It comes back
// when attaching to it succeeds again.
func (s *Loader) halt(c *dibs.Campaign, cause error) {
	s.log.Error("a campaign is halted: its journal and its ledger do not fit together", "campaign", c.ID, "err", cause)
	s.halts.Store(c.ID, cause)
	s.registry.Drop(c)
}

// Load brings a shard from the ledger into the engine. When the ledger and the
// journal's tail contradict each other, the campaign's shards are settled together: a
// ledger that went back may lack what left the others for this one. When that does not
// help, the tail is settled as it is: the entry that is to blame is in quarantine then, and
// part of the load.
func (s *Loader) Load(ctx context.Context, t *Shard) error {
	err := s.loadOnce(ctx, t)
	if errors.Is(err, dibs.ErrCorrupt) && len(t.l.Shards) > 1 {
		if err := s.settleTogether(ctx, t); err != nil {
			return err
		}
		err = s.loadOnce(ctx, t)
	}
	if err == nil {
		s.waitsForUnits.Delete(t.ID)
	}
	if !errors.Is(err, dibs.ErrCorrupt) {
		return err
	}
	before := t.At()
	if tailErr := s.settler.settleTail(ctx, t, true); tailErr != nil {
		return errors.Join(err, tailErr)
	}
	if t.At() == before {
		return err
	}
	return s.loadOnce(ctx, t)
}

// loadOnce loads a shard. A ledger that was restored from a backup knows fewer
// epochs than the journal has seen.
func (s *Loader) loadOnce(ctx context.Context, t *Shard) error {
	// A load costs an epoch; an engine that does not answer gets none.
	if err := s.engine.Ping(ctx); err != nil {
		return dibs.AsUnavailable(err, dibs.EffectNone)
	}
	defer s.leaseWhile(ctx, t)()
	if !s.engine.Shared() {
		// No position may move between the load and the engine's reading of its
		// journal's tail. Where other nodes settle too, this cannot be had, and need
		// not: what they settle stands in the tail, which is kept longer than a load
		// takes.
		s.settler.alone.Lock()
		defer s.settler.alone.Unlock()
	}
	c, err := s.ledger.CampaignByNumber(ctx, t.ID.Campaign)
	if err != nil {
		return err
	}
	if err := s.countable(c); err != nil {
		return err
	}
	if !s.registry.Sells(c) && !t.l.recalled {
		// It was ended meanwhile, on another node.
		t.l.Renew(c)
		if s.engine.Shared() {
			// A load that was broken off may have fenced everybody off before its end.
			return s.settleShards(ctx, []*Shard{t}, false)
		}
		return dibs.Unavail(dibs.EffectNone, dibs.ErrNotOpen)
	}
	if s.engine.Shared() {
		// The load counts what this node has read and is settling just now: where the
		// engine has lost it, no other part has it any more.
		s.settler.alone.Lock()
		s.settler.alone.Unlock() //nolint:staticcheck // nothing is done meanwhile, it is only waited for
	}
	by, err := s.fits(ctx, t.ID)
	if err != nil {
		return err
	}
	if err := s.undivided.before(t.ID, c.Shards, by); err != nil {
		return err
	}
	load, err := s.ledger.LoadShard(ctx, c, t.ID, by)
	if err != nil {
		return err
	}
	t.reload.backoff.spend()
	// The ledger may have gone back in time since it was compared: the engine takes a
	// journal that has nothing more for one that ends there.
	end, err := s.engine.JournalEnd(ctx, t.ID)
	if err == nil {
		err = s.fitsUntil(ctx, t.ID, load.Position, end)
	}
	if err != nil {
		return err
	}
	if s.engine.Shared() {
		load.Stands = func(ctx context.Context) error { return s.stands(ctx, c, t.ID, load.Epoch) }
	}
	t.progress.enter(load.Epoch, load.Position)
	if err := s.undivided.after(t.ID, c.Shards, by, s.engine.Open(ctx, c, t.ID, load)); err != nil {
		return err
	}
	t.l.Renew(c)
	return s.overtaken(ctx, c)
}

// loadAgain has a shard loaded from the ledger that is open and does not agree with it;
// cause says why, and is returned while this node may not. The load counts the commands
// that wait for the shard. Like reopen it leaves the shard alone while another goroutine
// opens it, and for a while after a failure: the caller asks every second, and each load
// costs an epoch.
func (s *Loader) loadAgain(ctx context.Context, id dibs.ShardID, cause error) error {
	t := s.registry.Shard(id)
	if t == nil || !t.reload.begin() {
		return cause
	}
	defer t.reload.end()
	held, err := s.settler.takeLease(ctx, t, dibs.Cursor{})
	if err != nil || !held {
		return errors.Join(err, cause)
	}
	s.settler.setSettles(t, true)
	err = s.haltFor(ctx, t, s.Load(ctx, t))
	t.reload.backoff.after(err)
	return err
}

// stands returns nil while an epoch is a shard's latest in the ledger, and the campaign
// has as many shards as the load is made by, and was not ended since. A shard that was opened by fewer after that
// would serve users who are told by others that it does not know them. Whoever ends a campaign waits for a load, but not
// for as long as that of a large shard takes: after the answer it must not be opened as if it went on.
func (s *Loader) stands(ctx context.Context, c *dibs.Campaign, id dibs.ShardID, epoch uint16) error {
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return err
	}
	now, err := s.ledger.CampaignByNumber(ctx, c.Number)
	if err == nil && (totals.Epoch != epoch || now.Shards != c.Shards || s.registry.Sells(c) && !s.registry.Sells(now)) {
		err = dibs.ErrStale
	}
	return err
}

// overtaken makes the engine obey a change of a campaign that came while it was
// loaded by the definition before.
func (s *Loader) overtaken(ctx context.Context, c *dibs.Campaign) error {
	if !s.engine.Shared() {
		return nil
	}
	now, err := s.ledger.CampaignByNumber(ctx, c.Number)
	if err != nil || now.Version == c.Version {
		return err
	}
	if err := s.engine.Configure(ctx, now); err != nil && !errors.Is(err, dibs.ErrNotOpen) {
		return err
	}
	return nil
}

// leaseWhile keeps the lease of a shard until the returned function is called:
// a large shard takes longer to load than a lease lasts.
func (s *Loader) leaseWhile(ctx context.Context, t *Shard) (end func()) {
	if !s.engine.Shared() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for wait.Sleep(ctx, dibs.LeaseTime/3) {
			if _, err := s.engine.Lease(ctx, t.ID, dibs.Cursor{}); err != nil && ctx.Err() == nil {
				s.log.Warn("the lease of a shard that is being loaded could not be renewed", "shard", t.ID.String(), "err", err)
			}
		}
	}()
	return cancel
}

// notOpen acts on a shard that the engine does not hold, or does not trust.
func (s *Loader) notOpen(t *Shard) {
	c := t.l.Def()
	if s.registry.Over(c) {
		// Another node has let it leave the engine.
		s.registry.Drop(c)
		return
	}
	if now := time.Now(); s.registry.Sells(c) || s.engine.Shared() && !now.Before(t.reload.tailAt) {
		// A campaign that is over is not loaded, and the rest of its journal is settled.
		t.reload.tailAt = now.Add(dibs.LeaseTime)
		s.reopen(t)
	}
}

// reopen has a shard opened again, unless that is being done or has failed just
// now. It goes on when the call that found the shard closed is over, and ends with the node.
func (s *Loader) reopen(t *Shard) {
	if !t.reload.begin() {
		return
	}
	c := t.l.Def()
	if s.registry.Sells(c) {
		s.log.Warn("a shard is not open: it is loaded from the ledger", "campaign", c.ID, "shard", t.ID.String())
	}
	go func() {
		defer t.reload.end()
		err := s.open(s.life, t)
		again := t.reload.backoff.after(err)
		if err != nil && s.life.Err() == nil {
			if permanent(err) {
				// Else nothing keeps what was granted from being settled.
				t.progress.noteAttempt(err)
			}
			s.log.Error("a shard could not be loaded", "campaign", c.ID, "shard", t.ID.String(), "err", err, "again_in", again)
		}
	}()
}

// opener says where a shard's next epoch would begin, and where its journal ends.
func (s *Loader) opener(ctx context.Context, id dibs.ShardID) (end dibs.Cursor, by Opener, err error) {
	if end, err = s.engine.JournalEnd(ctx, id); err != nil {
		return end, by, err
	}
	by.Epoch = end.Epoch
	if s.deployment != nil {
		if by.Deployment, err = s.deployment(ctx, id); err != nil {
			return end, by, err
		}
	}
	by.Server, err = s.engine.Server(ctx, id)
	return end, by, err
}

// fits says where a shard's next epoch would begin, or returns ErrGap when its
// journal does not go on where the ledger ends.
func (s *Loader) fits(ctx context.Context, id dibs.ShardID) (Opener, error) {
	end, by, err := s.opener(ctx, id)
	if err != nil {
		return by, err
	}
	totals, err := s.ledger.Totals(ctx, id)
	if err != nil {
		return by, err
	}
	return by, s.fitsUntil(ctx, id, totals.Position, end)
}

// fencedOff has a shard opened again whose epoch was raised since this node opened
// it under a fence. Until then nothing of it is settled here.
func (s *Loader) fencedOff(t *Shard, fence uint16) {
	if t.progress.leave(fence) {
		// Also when it is over: another node may have it open, for a late payment or to
		// bring what is left of a red packet home.
		s.reopen(t)
	}
}
