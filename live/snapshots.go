package live

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// Snapshots tells where campaigns stand, and calls those that watch them. All methods are
// safe for concurrent use.
//
// watchesMu guards watches and is taken before a watchedCampaign's mu. A campaign is in
// watches while somebody watches it.
type Snapshots struct {
	shared
	lookups *Lookups
	loader  *Loader

	// watches are the campaigns that are watched here, by id. first wakes the loop, which
	// sleeps while there are none.
	watchesMu sync.RWMutex
	watches   map[string]*watchedCampaign
	first     chan struct{}
}

// snapshotOf puts together what is known.
func snapshotOf(c *dibs.Campaign, remaining int64, head dibs.Cursor, now time.Time) dibs.Snapshot {
	st := dibs.Snapshot{
		Campaign: c, Phase: c.Phase(now, remaining), Remaining: remaining, At: now.UTC(), Mark: dibs.Mark{Version: c.Version, Head: head, Window: 1},
	}
	switch {
	case !now.Before(c.EndsAt):
		st.Mark.Window = 2
	case now.Before(c.StartsAt):
		st.Mark.Window = 0
	}
	return st
}

// Get returns where a campaign stands by what this node knows, without
// asking another machine while the campaign is live here. ErrNotFound, for
// drafts too; *Error of Overloaded when too much is asked about campaigns that
// are not live.
func (s *Snapshots) Get(ctx context.Context, id string) (dibs.Snapshot, error) {
	if l := s.registry.Live(id); l != nil {
		if st, ok := s.liveSnapshot(l); ok {
			return st, nil
		}
	}
	c, err := s.lookups.public(ctx, id, s.lookups.pages)
	if err != nil {
		return dibs.Snapshot{}, err
	}
	if !s.registry.Sells(c) {
		// The remainder of a campaign that is over is for reports.
		return snapshotOf(c, 0, dibs.Cursor{}, s.now()), nil
	}
	l, err := s.loader.EnsureLive(ctx, c)
	if err == nil && l != nil {
		if st, ok := s.liveSnapshot(l); ok {
			return st, nil
		}
	}
	// It is being loaded: it is not known yet what is left.
	return snapshotOf(c, c.Stock.Total, dibs.Cursor{}, s.now()), nil
}

// liveSnapshot is where a live campaign stands; false while a shard is not open.
func (s *Snapshots) liveSnapshot(l *Campaign) (dibs.Snapshot, bool) {
	c := l.Def()
	var remaining int64
	var head dibs.Cursor
	now, ahead := s.now(), int64(math.MinInt64)
	for _, t := range l.Shards {
		st, err := s.registry.glance(s.life, t)
		if err != nil {
			return dibs.Snapshot{}, false
		}
		// With what is on its way from one shard to another.
		remaining += st.Remaining + st.Moved
		head.Epoch += st.Head.Epoch
		head.Seq += st.Head.Seq
		if !s.engine.Shared() {
			now = dibs.FromMS(st.Now)
		}
		ahead = max(ahead, t.seen.skewMS.Load())
	}
	if s.engine.Shared() {
		// A server's clock is behind what it says by the time that its answer took: the
		// shard that answered soonest tells it best.
		now = now.Add(time.Duration(ahead) * time.Millisecond)
	}
	return snapshotOf(c, remaining, head, now), true
}

const (
	// standEvery is how often it is checked whether what is watched has changed:
	// it reads this process's memory only.
	standEvery = 25 * time.Millisecond
	// standLook is how rarely the engine is asked, at least, about a campaign that
	// is watched: by this much another node's grants are seen later.
	standLook = 250 * time.Millisecond
)

// watchedCampaign is a campaign that is watched on this node. mu guards every field and is
// held while watchers are called, so that stop returns after the last call. last never
// moves back.
type watchedCampaign struct {
	mu   sync.Mutex
	last dibs.Snapshot
	tell map[int]func(dibs.Snapshot)
	next int
}

// FollowChanges has shards looked at as soon as the engine tells of a change.
func (s *Snapshots) FollowChanges(engine dibs.Abilities) {
	if engine.OnChange == nil {
		return
	}
	engine.OnChange(func(id dibs.ShardID) {
		if t := s.registry.Shard(id); t != nil {
			t.l.changes.Add(1)
			t.Wake()
		}
	})
}

// Watch calls tell whenever the campaign's snapshot has changed, as
// this node comes to know of it: within standEvery of its own changes, and of
// those of other nodes as the engine tells. Of snapshots that follow each other
// quickly some may be left out, never the last. It returns the snapshot to begin
// with. tell is called from one goroutine and must return at once; stop ends it,
// and none begins after it has returned. ErrNotFound, for drafts too.
func (s *Snapshots) Watch(ctx context.Context, id string, tell func(dibs.Snapshot)) (now dibs.Snapshot, stop func(), err error) {
	if now, err = s.Get(ctx, id); err != nil {
		return now, nil, err
	}
	s.watchesMu.Lock()
	w := s.watches[id]
	if w == nil {
		w = &watchedCampaign{last: now, tell: map[int]func(dibs.Snapshot){}}
		s.watches[id] = w
		wait.Kick(s.first)
	}
	w.mu.Lock()
	n := w.next
	w.next++
	w.tell[n] = tell
	if w.last.Mark.Compare(now.Mark) > 0 {
		now = w.last
	}
	w.mu.Unlock()
	s.watchesMu.Unlock()
	if l := s.registry.Live(id); l != nil {
		l.Wake()
	}
	return now, func() { s.unwatch(id, w, n) }, nil
}

func (s *Snapshots) unwatch(id string, w *watchedCampaign, n int) {
	s.watchesMu.Lock()
	defer s.watchesMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tell, n)
	if len(w.tell) == 0 && s.watches[id] == w {
		delete(s.watches, id)
	}
}

// isWatched reports whether a campaign is watched here.
func (s *Snapshots) isWatched(id string) bool {
	s.watchesMu.RLock()
	defer s.watchesMu.RUnlock()
	return s.watches[id] != nil
}

// loop tells of changes.
func (s *Snapshots) loop(ctx context.Context) {
	var all []*watchedCampaign
	for {
		if len(all) == 0 {
			select {
			case <-s.first:
			case <-ctx.Done():
				return
			}
		}
		if !wait.Sleep(ctx, standEvery) {
			return
		}
		all = all[:0]
		s.watchesMu.RLock()
		for _, w := range s.watches {
			all = append(all, w)
		}
		s.watchesMu.RUnlock()
		for _, w := range all {
			s.notify(w)
		}
	}
}

// notify calls those that watch a campaign when it has changed.
func (s *Snapshots) notify(w *watchedCampaign) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.last.Campaign
	var now dibs.Snapshot
	if l := s.registry.Live(c.ID); l != nil {
		// While a shard is not open, what was known stays.
		var ok bool
		if now, ok = s.liveSnapshot(l); !ok {
			return
		}
	} else {
		// It is over, or on its way into this node: only the clock moves it.
		now = snapshotOf(c, w.last.Remaining, w.last.Mark.Head, s.now())
	}
	if now.Mark.Compare(w.last.Mark) <= 0 && !(now.Mark == w.last.Mark && now.Remaining != w.last.Remaining) {
		return
	}
	w.last = now
	for _, tell := range w.tell {
		tell(now)
	}
}
