package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
)

// slowLedger has campaigns that are not live, and takes its time to say so.
type slowLedger struct {
	Ledger
	reads atomic.Int64
	fails atomic.Bool
}

var errAway = errors.New("the ledger is away")

func (l *slowLedger) Campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	l.reads.Add(1)
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := &dibs.Campaign{ID: id, EndsAt: time.Now().Add(-time.Hour)}
	switch {
	case l.fails.Load():
		return nil, errAway
	case id == "draft":
		c.State = dibs.Draft
	case id == "ended":
		c.State = dibs.EndedState
	default:
		return nil, dibs.ErrNotFound
	}
	return c, nil
}

// A storm on a campaign that is not live asks the ledger once a second, however
// many press, and everybody is answered.
func TestStormsOnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLedger{}
		s := lookupService(t, l)
		for id, want := range map[string]error{"unknown": dibs.ErrNotFound, "draft": nil, "ended": nil} {
			before := l.reads.Load()
			for range 20 {
				storm(t, s, id, want)
				wait.Sleep(t.Context(), 100*time.Millisecond)
			}
			// Twenty storms take three seconds.
			if n := l.reads.Load() - before; n > 4 {
				t.Errorf("%s: the ledger was asked %d times in 3 s", id, n)
			}
		}
	})
}

func lookupService(t *testing.T, l Ledger) *Node {
	return newNode(t, Config{Ledger: l})
}

// storm has a thousand users claim at once.
func storm(t *testing.T, s *Node, id string, want error) {
	t.Helper()
	var crowd sync.WaitGroup
	for u := range 1000 {
		crowd.Go(func() {
			c, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: id, UserID: fmt.Sprint("u", u)})
			if !errors.Is(err, want) || err == nil && c.ID != id {
				t.Errorf("%s: %v, want %v", id, err, want)
			}
		})
	}
	crowd.Wait()
}

// The same of whoever asks for a campaign's room, lottery or tickets.
func TestCampaignsForUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLedger{}
		s := lookupService(t, l)
		var crowd sync.WaitGroup
		for id, want := range map[string]error{"unknown": dibs.ErrNotFound, "draft": dibs.ErrNotFound, "ended": nil} {
			for range 1000 {
				crowd.Go(func() {
					if c, err := s.Lookups.Public(t.Context(), id); !errors.Is(err, want) || err == nil && c.ID != id {
						t.Errorf("%s: %v, want %v", id, err, want)
					}
				})
			}
		}
		crowd.Wait()
		if n := l.reads.Load(); n != 3 {
			t.Errorf("the ledger was asked %d times for three campaigns", n)
		}
	})
}

// TestPagesTakeNoPlacesOfClaims: however many campaigns strangers make up, claims on campaigns that are not live here ask
// the ledger.
func TestPagesTakeNoPlacesOfClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lookupService(t, &slowLedger{})
		var crowd sync.WaitGroup
		var refused atomic.Int64
		for i := range 2 * maxLookups {
			crowd.Go(func() {
				if _, err := s.Snapshots.Get(t.Context(), fmt.Sprint("no", i)); errors.Is(err, dibs.ErrOverloaded) {
					refused.Add(1)
				} else if !errors.Is(err, dibs.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if c, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: "ended", UserID: "42"}); err != nil || c.ID != "ended" {
			t.Errorf("a claim: %v, %v", c, err)
		}
		crowd.Wait()
		if n := refused.Load(); n != 2*maxLookups-maxPublicLookups {
			t.Errorf("%d pages were refused", n)
		}
	})
}

// TestStrangersTakeNoPlacesOfUsers: however many campaigns strangers make up, users and keys are told of those that are not
// live here; what callers make up takes no places of claims.
func TestStrangersTakeNoPlacesOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lookupService(t, &slowLedger{})
		var crowd sync.WaitGroup
		ask := func(n int, who string, of func(context.Context, string) (*dibs.Campaign, error)) *atomic.Int64 {
			refused := &atomic.Int64{}
			for i := range n {
				crowd.Go(func() {
					if _, err := of(t.Context(), fmt.Sprint(who, i)); errors.Is(err, dibs.ErrOverloaded) {
						refused.Add(1)
					} else if !errors.Is(err, dibs.ErrNotFound) {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			return refused
		}
		strangers := ask(2*maxPublicLookups, "strange", s.Lookups.Public)
		if c, err := s.Lookups.ForCaller(t.Context(), "ended"); err != nil || c.ID != "ended" {
			t.Errorf("a user: %v, %v", c, err)
		}
		callers := ask(2*maxCallerLookups, "made-up", s.Lookups.ForCaller)
		if _, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: "draft", UserID: "42"}); err != nil {
			t.Errorf("a claim: %v", err)
		}
		crowd.Wait()
		if a, b := strangers.Load(), callers.Load(); a != maxPublicLookups || b != maxCallerLookups {
			t.Errorf("%d strangers and %d callers were refused", a, b)
		}
	})
}

// Users' questions do not fill the memory, and an error is not remembered.
func TestLookupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLedger{}
		s := lookupService(t, l)
		var crowd sync.WaitGroup
		var refused atomic.Int64
		for i := range 3 * lookupsKept {
			if i%maxLookups == 0 {
				wait.Sleep(t.Context(), 60*time.Millisecond)
			}
			crowd.Go(func() {
				_, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: fmt.Sprint("no", i), UserID: "42"})
				if errors.Is(err, dibs.ErrOverloaded) {
					refused.Add(1)
				} else if !errors.Is(err, dibs.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		crowd.Wait()
		if n := len(s.Lookups.looked.known); n > lookupsKept || refused.Load() > 0 {
			t.Errorf("%d are remembered, %d were refused", n, refused.Load())
		}
		l.fails.Store(true)
		if _, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: "draft", UserID: "42"}); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		l.fails.Store(false)
		if c, err := s.Lookups.LookUp(t.Context(), &dibs.ClaimRequest{CampaignID: "draft", UserID: "42"}); err != nil || c.State != dibs.Draft {
			t.Fatalf("%v, %v", c, err)
		}
	})
}
