package router_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/engine/router"
	"github.com/dibs-dev/dibs/live"
)

// late is a router over two servers whose first deployment cannot be reached before there
// is an address at which it is.
type late struct {
	*site
	e  *router.Engine
	at atomic.Pointer[string]
}

var errNothing = errors.New("nothing listens")

func newLate(t *testing.T) *late {
	t.Helper()
	l := &late{site: newSite(t, 2)}
	there, err := redisengine.Open(t.Context(), redisengine.Config{URL: l.redis[1].URL()})
	must(t, err)
	l.e, err = router.New(t.Context(), router.Config{Ledger: l.book, Members: []router.Member{
		{Number: 1, Open: func(ctx context.Context) (router.Deployment, error) {
			if url := l.at.Load(); url != nil {
				return redisengine.Open(ctx, redisengine.Config{URL: *url})
			}
			return nil, errNothing
		}},
		{Number: 2, Engine: there},
	}})
	must(t, err)
	t.Cleanup(func() {
		if err := l.e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.eng = &noting{l.e, l.book}
	return l
}

// TestALatecomer opens a router whose first deployment cannot be reached. Its calls are
// refused and the other one's go on. An address of the other one's server is not taken for
// it; the right server is, and is told whom to call.
func TestALatecomer(t *testing.T) {
	s := newLate(t)
	e := s.e
	changed := make(chan dibs.ShardID, 16)
	e.Abilities().OnChange(func(id dibs.ShardID) {
		select {
		case changed <- id:
		default:
		}
	})
	here := dibs.ShardID{Campaign: 1}
	s.book.put(here, 1)
	s.granted(s.sell(2, 2), "ann")
	if _, err := s.claim(here, "ann"); !errors.Is(err, live.ErrAway) {
		t.Errorf("a claim of the first deployment: %v", err)
	}
	if n := s.sell(3, 0); s.book.on[n] != 2 {
		t.Errorf("a new shard is on deployment %d", s.book.on[n])
	}
	store := e.Abilities().Store
	if _, err := store.RunScript(t.Context(), "return {1}", []string{"k"}); !errors.Is(err, live.ErrAway) {
		t.Errorf("a script of a waiting room: %v", err)
	}
	must(t, store.Put(t.Context(), "ticket", "ann", time.Minute))
	if value, ok, err := store.Take(t.Context(), "ticket"); err != nil || !ok || value != "ann" {
		t.Errorf("a ticket: %q, %t, %v", value, ok, err)
	}
	if e.First() != 2 {
		t.Errorf("deployment %d is the first that answers", e.First())
	}
	until(t, "why it is away is known", func() bool { return errors.Is(e.Abilities().Deployments(t.Context())[1], errNothing) })

	s.at.Store(new(fmt.Sprint(s.redis[1].URL(), "/1")))
	until(t, "a database of the other one's server is refused", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, live.ErrUnfit)
	})
	s.at.Store(new(s.redis[0].URL()))
	until(t, "the right one is there", func() bool {
		_, err := s.claim(here, "ann")
		return errors.Is(err, dibs.ErrNotOpen)
	})
	select {
	case <-e.Appended():
	default:
	}
	s.open(here, 1)
	s.granted(here, "ann")
	until(t, "a change of a shard of it is told", func() bool { return len(changed) > 0 && (<-changed) == here })
	if _, err := store.RunScript(t.Context(), "return {1}", []string{"k"}); err != nil {
		t.Errorf("a script of a waiting room: %v", err)
	}
	if e.First() != 1 {
		t.Errorf("deployment %d is the first that answers", e.First())
	}
	select {
	case <-e.Appended():
	case <-time.After(10 * time.Second):
		t.Error("nothing is told of its journal")
	}
}
