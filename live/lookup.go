package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// maxLookups bounds concurrent ledger look-ups caused by claims, maxCallerLookups those
// caused by other calls of users and keys, and maxPublicLookups those caused by public
// pages: strangers make up ids, and must not take the places of users.
const (
	maxLookups       = 64
	maxCallerLookups = 32
	maxPublicLookups = 16
)

// Lookups reads campaigns that are not live on this node, for claims and public
// pages: each once for all callers, and a bounded number at a time. All methods are
// safe for concurrent use.
type Lookups struct {
	shared
	// lookups has a place for each question to the ledger on behalf of claims, callers for
	// those on behalf of other calls with credentials, pages for those of public pages.
	lookups, callers, pages chan struct{}
	looked                  lookups
}

const (
	// lookupKeep is how long what was read of a campaign that is not live here is
	// believed. One that this node publishes is live then, and asked no more; one
	// that another node publishes is taken up within DiscoverEvery.
	lookupKeep = DiscoverEvery
	// lookupsKept bounds the campaigns that are remembered, by ids that users send.
	lookupsKept = 4096
	// lookupPatience bounds one question to the ledger.
	lookupPatience = 5 * time.Second
)

// lookups remembers what was read of campaigns that are not live here, by id.
//
// mu guards known and the until of every lookup in it, and is not held during a reading.
// known has at most lookupsKept entries. The goroutine that reads sets c and err before it
// closes done; callers read them after that.
type lookups struct {
	mu    sync.Mutex
	known map[string]*lookup
}

type lookup struct {
	c    *dibs.Campaign // never changed
	err  error
	done chan struct{}
	// until is when it has to be read again; zero while it is being read.
	until time.Time
}

// LookUp returns a campaign as the ledger had it within lookupKeep.
// ErrNotFound; an *Error of Overloaded when too much is asked at once.
func (s *Lookups) LookUp(ctx context.Context, req *dibs.ClaimRequest) (*dibs.Campaign, error) {
	return s.lookUp(ctx, req, s.lookups)
}

// lookUp is LookUp with a place of some.
func (s *Lookups) lookUp(ctx context.Context, req *dibs.ClaimRequest, places chan struct{}) (*dibs.Campaign, error) {
	ls := &s.looked
	ls.mu.Lock()
	l := ls.known[req.CampaignID]
	if l == nil || !l.until.IsZero() && !time.Now().Before(l.until) {
		free, err := take(places, req)
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
		return nil, dibs.Unavail(req.Effect(), ctx.Err())
	}
}

// public is LookUp for users, with a place of some: what they may not know of is not found.
func (s *Lookups) public(ctx context.Context, id string, places chan struct{}) (*dibs.Campaign, error) {
	c, err := s.lookUp(ctx, &dibs.ClaimRequest{CampaignID: id}, places)
	switch {
	case errors.Is(err, dibs.ErrNotFound), err == nil && (c.State == dibs.Draft || c.Regular()):
		return nil, dibs.NoSuchCampaign
	case err != nil:
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	return c, nil
}

// MayLookUp takes one of the places for a caller that asks the ledger on behalf of a
// claim.
func (s *Lookups) MayLookUp(req *dibs.ClaimRequest) (free func(), err error) {
	return take(s.lookups, req)
}

// take takes one of some places.
func take(places chan struct{}, req *dibs.ClaimRequest) (free func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, &dibs.Error{Reason: dibs.Overloaded, Effect: req.Effect(), RetryAfter: time.Second, Detail: tooManyLookups}
	}
}

// read asks the ledger. An error is not remembered, but for ErrNotFound.
func (s *Lookups) read(id string, l *lookup) {
	// The first caller may go away: others wait too.
	ctx, cancel := context.WithTimeout(s.life, lookupPatience)
	defer cancel()
	until := time.Now().Add(lookupKeep)
	l.c, l.err = s.ledger.Campaign(ctx, id)
	s.looked.mu.Lock()
	defer s.looked.mu.Unlock()
	if l.until = until; l.err != nil && !errors.Is(l.err, dibs.ErrNotFound) && s.looked.known[id] == l {
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
	ls.known[id] = l
}

// Public is Get for anybody. Drafts are not found. For a campaign that is not live here
// the ledger is asked once a second at most, however many ask. ErrNotFound; *Error of
// Overloaded when too much is asked at once.
func (s *Lookups) Public(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.visible(ctx, id, s.pages)
}

// ForCaller is Public for users and keys, with places of its own, so that strangers cannot
// take them all.
func (s *Lookups) ForCaller(ctx context.Context, id string) (*dibs.Campaign, error) {
	return s.visible(ctx, id, s.callers)
}

// visible returns a campaign that is live here, or else asks the ledger in one of some
// places.
func (s *Lookups) visible(ctx context.Context, id string, places chan struct{}) (*dibs.Campaign, error) {
	if l := s.registry.Live(id); l != nil {
		return l.Def(), nil
	}
	return s.public(ctx, id, places)
}
