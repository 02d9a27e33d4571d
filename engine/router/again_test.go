package router_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/engine/router"
	"github.com/dibs-dev/dibs/live"
)

// TestAnotherRunIsChecked restarts a server of a router. Before anything is loaded into what
// answers there, it is checked: while that says no, nothing is asked of it; while the check
// itself cannot be done, it is away; when it says yes, it is used as before. A connection
// that was lost to the same run is checked by nobody.
func TestAnotherRunIsChecked(t *testing.T) {
	s := newSite(t, 2)
	var says atomic.Pointer[error]
	var checks atomic.Int64
	says.Store(new(error))
	var members []router.Member
	for i, r := range s.redis {
		e, err := redisengine.Open(t.Context(), redisengine.Config{URL: r.URL()})
		must(t, err)
		members = append(members, router.Member{Number: i + 1, Engine: e, Check: func(context.Context, router.Deployment) error {
			checks.Add(1)
			return *says.Load()
		}})
	}
	e, err := router.New(t.Context(), router.Config{Members: members, Ledger: s.book})
	must(t, err)
	s.eng = &noting{e, s.book}
	t.Cleanup(func() { must(t, e.Close(context.Background())) })
	here, there := s.sell(1, 1), s.sell(2, 2)
	s.granted(here, "ann")

	must(t, s.redis[0].Freeze())
	until(t, "the server is away", func() bool {
		_, err := e.Stats(t.Context(), here)
		return errors.Is(err, live.ErrAway)
	})
	must(t, s.redis[0].Thaw())
	until(t, "the same run goes on", func() bool {
		d, err := s.claim(here, "ann")
		return err == nil && d.Replayed
	})
	if n := checks.Load(); n != 0 {
		t.Errorf("a run that was checked before was checked %d times", n)
	}

	restart := func(verdict error) {
		t.Helper()
		says.Store(&verdict)
		s.redis[0].Kill()
		must(t, s.redis[0].Start())
	}
	// The restart is over before a look has noticed it: the opening has to ask.
	restart(fmt.Errorf("%w: a stranger", live.ErrUnfit))
	c := &dibs.Campaign{Number: 1, Kind: dibs.Sale, State: dibs.Published, Stock: dibs.Stock{Kind: dibs.Units, Total: 10}, Shards: 1, Version: 1}
	if err := e.Open(t.Context(), c, here, &dibs.ShardLoad{Epoch: 2, StockLeft: 10}); !errors.Is(err, dibs.ErrUnavailable) || !errors.Is(err, live.ErrUnfit) {
		t.Errorf("a shard is opened on a server that is not the deployment's: %v", err)
	}
	until(t, "its claims say why", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, live.ErrUnfit)
	})
	s.granted(there, "bob")
	restart(errors.New("the ledger does not answer"))
	until(t, "what could not be checked is away", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, live.ErrAway) && !errors.Is(err, live.ErrUnfit)
	})
	says.Store(new(error))
	until(t, "it is used again", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, dibs.ErrNotOpen)
	})
	s.open(here, 3)
	s.granted(here, "bob")
}
