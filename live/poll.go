package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/trouble"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Poller keeps what this node knows of its shards and of the campaigns of other
// nodes. A field that is not atomic belongs to one loop, as said.
type Poller struct {
	shared
	settler     *Settler
	loader      *Loader
	snapshots   *Snapshots
	trouble     *trouble.Log
	journalKeep time.Duration

	// discovered has the campaigns that were live in the ledger when it was asked
	// last, by number; the discover loop's.
	discovered map[uint32]*dibs.Campaign
	// fleetLease is set while this node has the fleet's lease; fleetLeaseAt is when it is
	// asked for again, its loop's; see keepFleetLease.
	fleetLease   atomic.Bool
	fleetLeaseAt time.Time
	// polled is how many shards are live here; alarm has all of them looked at.
	polled atomic.Int64
	alarm  atomic.Bool
	// servers are the engine's, by address, as the ledger was told last; before Start
	// returns its caller's, then the servers loop's.
	servers map[string]string
	// left is when shards were seen to have left the engine; the tidy loop's.
	left map[dibs.ShardID]time.Time
	// stays is when the engine refused to let shards go; the tidy loop's.
	stays map[dibs.ShardID]time.Time
}

// loop keeps what is known of the live shards: backlog, lag,
// back-pressure, which node settles; and has those opened that are not open. Steps that
// may take longer have loops of their own: leases end that are not renewed in time.
func (s *Poller) loop(ctx context.Context) {
	for wait.Sleep(ctx, pollEvery) {
		s.pollAll(ctx)
	}
}

// pollAll looks at every shard whose time has come.
func (s *Poller) pollAll(ctx context.Context) {
	s.keepFleetLease(ctx)
	now := time.Now()
	if s.alarm.Swap(false) {
		s.lookBy(now)
	}
	n := int64(0)
	var looks sync.WaitGroup
	free := make(chan struct{}, pollsAtOnce)
	for t := range s.registry.eachShard {
		n++
		switch {
		case !t.pace.due(now):
		case !s.engine.Shared():
			// No other machine is asked: it takes less than to start a goroutine.
			s.poll(ctx, t)
		default:
			free <- struct{}{}
			looks.Go(func() {
				s.poll(ctx, t)
				<-free
			})
		}
	}
	looks.Wait()
	s.polled.Store(n)
	for l := range s.registry.each {
		sum := int64(0)
		for _, t := range l.Shards {
			sum += t.seen.backlog.Load()
		}
		l.full.Store(sum >= s.maxBacklog)
		moving := l.underWay() != 0
		if l.moving.Store(moving); moving {
			// Entries of another node are not signalled here, and a shard waits for these.
			wait.Kick(s.settler.settleKick)
		}
	}
}

// poll looks at one shard.
func (s *Poller) poll(ctx context.Context, t *Shard) {
	t.pace.look()
	st, err := s.engine.Stats(ctx, t.ID)
	if errors.Is(err, dibs.ErrNotOpen) {
		if t.seen.stats.Swap(nil) != nil && s.registry.Sells(t.l.Def()) {
			// A server that has lost one shard may have lost them all.
			s.alarm.Store(true)
		}
		t.pace.soon()
		s.loader.notOpen(t)
		return
	}
	if err != nil {
		return
	}
	switch fence, _ := t.progress.fenced(); {
	case fence < st.Head.Epoch:
		// Another node has loaded the shard.
		s.loader.fencedOff(t, fence)
	case fence == st.Head.Epoch && !t.reload.opening.Load():
		// It is open, whatever this node's last attempt to load it came to.
		t.reload.backoff.after(nil)
	}
	if st.Uncounted != 0 {
		s.loader.keepCounting(ctx, t.l)
	}
	before := t.seen.keep(&st, s.now())
	if fence, _ := t.progress.fenced(); fence != st.Head.Epoch {
		// Another node has loaded the shard.
		s.loader.fencedOff(t, fence)
	}
	s.paceOf(t, before, &st)
	s.measure(t, &st)
	s.askOldest(ctx, t, &st)
	s.keepLease(ctx, t, &st)
	s.keepVersion(ctx, t, &st)
}

// paceOf decides when a shard is looked at again.
func (s *Poller) paceOf(t *Shard, before, now *dibs.ShardStats) {
	moves := before == nil || before.Head != now.Head || before.Version != now.Version || t.seen.backlog.Load() > 0
	every := 2 * t.pace.every
	switch {
	case !s.engine.Shared() || moves:
		every = pollEvery
	case t.Settles():
		// A node that grants something meanwhile leaves it to this one.
		every = min(every, pollSettling)
	default:
		every = min(every, s.idlePace(s.HasFleetLease()))
	}
	if every > standLook && s.snapshots.isWatched(t.l.Def().ID) {
		every = standLook
	}
	t.pace.after(max(every, pollEvery))
}

// measure notes how much of a shard waits to be settled.
func (s *Poller) measure(t *Shard, st *dibs.ShardStats) {
	t.seen.backlog.Store(t.progress.measure(st, t.Settles()))
}

// askOldest reads the oldest entry that waits, where else only a bound of its age is known:
// another node settles the shard, or the entries are older than this node.
func (s *Poller) askOldest(ctx context.Context, t *Shard, st *dibs.ShardStats) {
	after, ask := t.progress.asks(st)
	if !ask {
		return
	}
	// One that cannot be read says nothing. Settling meets it, too, and tells.
	if next, err := s.engine.ReadJournal(ctx, t.ID, after, 1); err == nil && len(next) > 0 {
		t.progress.found(after, &next[0])
	}
}

// keepLease has a node settle a shard while there is something to settle. The
// lease of a shard that stands still is let go by not renewing it: each renewal
// is a write, and with appendfsync always one to the disk.
func (s *Poller) keepLease(ctx context.Context, t *Shard, st *dibs.ShardStats) {
	if !s.engine.Shared() && t.Settles() {
		return
	}
	now := time.Now()
	if !st.Settled.Before(st.Head) && !t.At().Before(t.progress.want()) {
		if t.lease.over(now) {
			s.settler.setSettles(t, false)
		}
		return
	}
	if !t.lease.due(now) {
		return
	}
	held, err := s.settler.takeLease(ctx, t, t.At())
	if err != nil {
		// Another node may settle it: the ledger's compare-and-set keeps it right.
		s.log.Warn("the lease of a shard could not be renewed", "shard", t.ID.String(), "err", err)
		return
	}
	if held && !t.Settles() {
		told := t.At()
		if s.settler.readPosition(ctx, t); t.At() != told {
			// The node that settled it has not told the engine.
			s.settler.tellSettled(ctx, t)
		}
	}
	s.settler.setSettles(t, held)
}

// keepVersion makes this node and the engine have a campaign as the ledger has it. A
// change is in the ledger before it reaches the engine: an engine with a later version
// than the ledger has one that the ledger has lost, and would take every change from
// now on for an older one.
func (s *Poller) keepVersion(ctx context.Context, t *Shard, st *dibs.ShardStats) {
	if st.Version == t.l.Version() || !t.l.mayRead() {
		return
	}
	c, err := s.readAgain(ctx, t.l)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			s.log.Warn("a campaign's change could not be read", "campaign", t.l.Def().ID, "err", err)
		}
		return
	case st.Version > c.Version && (s.registry.Sells(c) || t.l.recalled):
		fence, _ := t.progress.fenced()
		s.loader.fencedOff(t, fence)
	case st.Version > c.Version:
		// Nothing loads it, and by what the engine has it may still be sold.
		err = s.engine.Halt(ctx, t.ID)
	case t.l.lacksShards(c) && c.State == dibs.Published:
		// The shards that are lacking are taken up first.
	case st.Version < c.Version:
		err = s.engine.Configure(ctx, c)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a campaign's change has not reached the engine", "campaign", c.ID, "err", err)
	}
}

// readAgain makes this node have a campaign as the ledger has it now, and returns it. It
// is older than the one known when the ledger went back in time: a backup was restored,
// or a standby promoted that lacked the last changes.
func (s *Poller) readAgain(ctx context.Context, l *Campaign) (*dibs.Campaign, error) {
	// The ledger has, or has lost, what this node knew before it asks.
	known := l.Def()
	c, err := s.ledger.CampaignByNumber(ctx, known.Number)
	if err != nil {
		return nil, err
	}
	if c.Version < known.Version {
		s.log.Warn("the ledger went back in time: it has an older version of a campaign", "campaign", c.ID, "known", known.Version, "version", c.Version)
		l.campaign.CompareAndSwap(known, c)
		l.Wake()
	} else if err := s.renew(ctx, l, c); err != nil {
		return nil, err
	}
	if l.Def() != known || s.registry.Live(c.ID) != l {
		s.registry.Changed()
	}
	return c, nil
}

// renew has this node have a campaign by a later definition. One that got more shards and
// was over before this node had taken those up, it lets go once all is settled that it
// holds. Nothing opens the new shards any more, and the node that trims the journal has
// all of them leave the engine.
func (s *Poller) renew(ctx context.Context, l *Campaign, c *dibs.Campaign) error {
	if !l.lacksShards(c) || s.registry.Sells(c) {
		l.Renew(c)
		return nil
	}
	for _, t := range l.Shards {
		end, err := s.engine.JournalEnd(ctx, t.ID)
		if err != nil {
			return err
		}
		if totals, err := s.ledger.Totals(ctx, t.ID); err != nil || totals.Position.Before(end) {
			return err
		}
	}
	s.registry.Drop(c)
	s.settler.followOthers(l)
	return nil
}

// pollSettled counts the shards once more that this node settles, and those on
// which something has happened that no node may be settling yet.
func (s *Poller) pollSettled(ctx context.Context) {
	for t := range s.registry.eachShard {
		if ctx.Err() != nil {
			return
		}
		if t.pace.idle.Load() && !t.Settles() {
			continue
		}
		if st, err := s.engine.Stats(ctx, t.ID); err == nil {
			t.seen.keep(&st, s.now())
			s.measure(t, &st)
			t.lease.askAt = time.Time{}
			s.keepLease(ctx, t, &st)
		}
	}
}

const (
	// pollsAtOnce is how many shards are looked at at the same time.
	pollsAtOnce = 16
	// DiscoverEvery is how often the ledger is asked for campaigns that other
	// nodes have published or changed.
	DiscoverEvery = time.Second
)
