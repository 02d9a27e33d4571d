package dibs

import (
	"context"
	"sync"
	"time"
)

const (
	// standEvery is how often it is checked whether what is watched has changed:
	// it reads this process's memory only.
	standEvery = 25 * time.Millisecond
	// standLook is how rarely the engine is asked, at least, about a campaign that
	// is watched: by this much another node's grants are seen later.
	standLook = 250 * time.Millisecond
)

// watchedCampaign is a campaign that somebody watches on this node.
type watchedCampaign struct {
	mu   sync.Mutex
	last Situation
	tell map[int]func(Situation)
	next int
}

// NewsTeller is an Engine that hears by itself when another process may have
// changed what a shard refuses with: its definition, or whether anything is left.
type NewsTeller interface {
	// OnNews sets who is called with such a shard. It is called once, before the
	// engine decides; f returns at once.
	OnNews(f func(ShardID))
}

// hearNews has shards looked at as soon as the engine hears of a change.
func (s *Service) hearNews() {
	if e, ok := s.cfg.Engine.(NewsTeller); ok {
		e.OnNews(func(id ShardID) {
			if t := s.settlingOf(id); t != nil {
				t.rouse()
			}
		})
	}
}

// WatchCampaign calls tell whenever the campaign's situation has changed, as
// this node comes to know of it: within standEvery of its own changes, and of
// those of other nodes as the engine tells. Standings that follow each other
// quickly may be left out, never the last. It returns the situation to begin
// with. tell is called from one goroutine and must return at once; stop ends it,
// and none begins after it has returned. ErrNotFound, for drafts too.
func (s *Service) WatchCampaign(ctx context.Context, id string, tell func(Situation)) (now Situation, stop func(), err error) {
	if now, err = s.Situation(ctx, id); err != nil {
		return now, nil, err
	}
	s.watchesMu.Lock()
	w := s.watches[id]
	if w == nil {
		w = &watchedCampaign{last: now, tell: map[int]func(Situation){}}
		if s.watches == nil {
			s.watches = map[string]*watchedCampaign{}
		}
		s.watches[id] = w
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
	if v, ok := s.lives.Load(id); ok {
		v.(*live).rouse()
	}
	return now, func() { s.unwatch(id, w, n) }, nil
}

func (s *Service) unwatch(id string, w *watchedCampaign, n int) {
	s.watchesMu.Lock()
	defer s.watchesMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tell, n)
	if len(w.tell) == 0 && s.watches[id] == w {
		delete(s.watches, id)
	}
}

// isWatched reports whether somebody watches a campaign here.
func (s *Service) isWatched(id string) bool {
	s.watchesMu.RLock()
	defer s.watchesMu.RUnlock()
	return s.watches[id] != nil
}

// standLoop tells of changes.
func (s *Service) standLoop(ctx context.Context) {
	var all []*watchedCampaign
	for sleep(ctx, standEvery) {
		all = all[:0]
		s.watchesMu.RLock()
		for _, w := range s.watches {
			all = append(all, w)
		}
		s.watchesMu.RUnlock()
		for _, w := range all {
			s.stand(w)
		}
	}
}

// stand tells who watches a campaign when it has changed.
func (s *Service) stand(w *watchedCampaign) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.last.Campaign
	var now Situation
	if v, ok := s.lives.Load(c.ID); ok {
		// While a shard is not open, what was known stays.
		if now, ok = s.liveSituation(v.(*live)); !ok {
			return
		}
	} else {
		// It is over, or on its way into this node: only the clock moves it.
		now = situationOf(c, w.last.Remaining, w.last.Mark.Head, s.cfg.Now())
	}
	if now.Mark.Compare(w.last.Mark) <= 0 && !(now.Mark == w.last.Mark && now.Remaining != w.last.Remaining) {
		return
	}
	w.last = now
	for _, tell := range w.tell {
		tell(now)
	}
}
