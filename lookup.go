package dibs

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// lookupKeep is how long what was read of a campaign that is not live here is
	// believed. One that this node publishes is live then, and asked no more; one
	// that another node publishes is taken up within discoverEvery.
	lookupKeep = discoverEvery
	// lookupsKept bounds the campaigns that are remembered, by ids that users send.
	lookupsKept = 4096
	// lookupPatience bounds one question to the ledger.
	lookupPatience = 5 * time.Second
)

// lookups reads campaigns that are not live here, each once for all who ask.
type lookups struct {
	mu    sync.Mutex
	known map[string]*lookup
}

type lookup struct {
	c    *Campaign // never changed
	err  error
	done chan struct{}
	// until is when it has to be read again; zero while it is being read.
	until time.Time
}

// lookUp returns a campaign as the ledger had it within lookupKeep.
// ErrNotFound; an *Error of Overloaded when too much is asked at once.
func (s *Service) lookUp(ctx context.Context, req *ClaimRequest) (*Campaign, error) {
	ls := &s.looked
	ls.mu.Lock()
	l := ls.known[req.CampaignID]
	if l == nil || !l.until.IsZero() && !time.Now().Before(l.until) {
		free, err := s.mayLookUp(req)
		if err != nil {
			ls.mu.Unlock()
			return nil, err
		}
		l = &lookup{done: make(chan struct{})}
		ls.keep(req.CampaignID, l)
		go func() {
			defer free()
			s.read(req.CampaignID, l)
		}()
	}
	ls.mu.Unlock()
	select {
	case <-l.done:
		return l.c, l.err
	case <-ctx.Done():
		return nil, Unavail(req.effect(), ctx.Err())
	}
}

// publicLookUp is lookUp for users: what they may not know of is not found.
func (s *Service) publicLookUp(ctx context.Context, id string) (*Campaign, error) {
	c, err := s.lookUp(ctx, &ClaimRequest{CampaignID: id})
	switch {
	case errors.Is(err, ErrNotFound), err == nil && (c.State == Draft || c.Regular()):
		return nil, noSuchCampaign
	case err != nil:
		return nil, asUnavailable(err, EffectNone)
	}
	return c, nil
}

// mayLookUp takes one of the places for those who ask the ledger on behalf of a
// claim.
func (s *Service) mayLookUp(req *ClaimRequest) (free func(), err error) {
	select {
	case s.lookups <- struct{}{}:
		return func() { <-s.lookups }, nil
	default:
		return nil, &Error{Reason: Overloaded, Effect: req.effect(), RetryAfter: time.Second, Detail: tooManyLookups}
	}
}

// read asks the ledger. What it does not answer is not remembered.
func (s *Service) read(id string, l *lookup) {
	// Whoever asked first may go away: others wait too.
	ctx, cancel := context.WithTimeout(s.life, lookupPatience)
	defer cancel()
	until := time.Now().Add(lookupKeep)
	l.c, l.err = s.ledger.Campaign(ctx, id)
	s.looked.mu.Lock()
	defer s.looked.mu.Unlock()
	if l.until = until; l.err != nil && !errors.Is(l.err, ErrNotFound) && s.looked.known[id] == l {
		delete(s.looked.known, id)
	}
	close(l.done)
}

// keep remembers a lookup, and when there are too many, forgets what is over, or
// else any.
func (ls *lookups) keep(id string, l *lookup) {
	if len(ls.known) >= lookupsKept {
		now := time.Now()
		for other, is := range ls.known {
			if !is.until.IsZero() && !now.Before(is.until) {
				delete(ls.known, other)
			}
		}
		for other := range ls.known {
			if len(ls.known) < lookupsKept {
				break
			}
			delete(ls.known, other)
		}
	}
	if ls.known == nil {
		ls.known = make(map[string]*lookup)
	}
	ls.known[id] = l
}
