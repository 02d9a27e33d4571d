package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// unwilling is an engine that opens no shard, and counts what it is asked.
type unwilling struct {
	dibs.Engine
	err        error
	halts      int
	configured []int64
	server     string
}

func (e *unwilling) Shared() bool                                                   { return true }
func (e *unwilling) Ping(context.Context) error                                     { return nil }
func (e *unwilling) Lease(context.Context, dibs.ShardID, dibs.Cursor) (bool, error) { return true, nil }
func (e *unwilling) Server(context.Context, dibs.ShardID) (string, error)           { return e.server, nil }

func (e *unwilling) Stats(context.Context, dibs.ShardID) (dibs.ShardStats, error) {
	return dibs.ShardStats{}, dibs.ErrNotOpen
}

func (e *unwilling) JournalEnd(context.Context, dibs.ShardID) (dibs.Cursor, error) {
	return dibs.Cursor{}, nil
}

func (e *unwilling) Open(context.Context, *dibs.Campaign, dibs.ShardID, *dibs.ShardLoad) error {
	return e.err
}

func (e *unwilling) Halt(context.Context, dibs.ShardID) error {
	e.halts++
	return nil
}

func (e *unwilling) Configure(_ context.Context, c *dibs.Campaign) error {
	e.configured = append(e.configured, c.Version)
	return nil
}

// spending is a ledger with one campaign that counts the epochs which loads have cost.
type spending struct {
	Ledger
	c      dibs.Campaign
	epochs atomic.Int64
}

func (l *spending) CampaignByNumber(context.Context, uint32) (*dibs.Campaign, error) {
	c := l.c
	return &c, nil
}

func (l *spending) Totals(context.Context, dibs.ShardID) (ShardTotals, error) {
	return ShardTotals{}, nil
}

func (l *spending) LoadShard(context.Context, *dibs.Campaign, dibs.ShardID, Opener) (*dibs.ShardLoad, error) {
	return &dibs.ShardLoad{Epoch: uint16(l.epochs.Add(1))}, nil
}

// unwillingNode is a node with a campaign of a number of shards, of which it holds the first.
func unwillingNode(t *testing.T, shards int, err error) (*Node, *unwilling, *spending, *Shard) {
	t.Helper()
	e := &unwilling{err: err, server: "run"}
	l := &spending{c: dibs.Campaign{Number: 1, ID: "a", State: dibs.Published, Shards: shards, Version: 1, EndsAt: time.Now().Add(time.Hour)}}
	n := newNode(t, Config{Engine: e, Ledger: l})
	held := NewCampaign(&dibs.Campaign{Number: 1, ID: "a", State: dibs.Published, Shards: 1, Version: 1, EndsAt: l.c.EndsAt})
	sh := newShard(dibs.ShardID{Campaign: 1}, held)
	held.Shards = []*Shard{sh}
	n.Registry.Put(held.Def(), held)
	return n, e, l, sh
}

// A shard that does not agree with the ledger is loaded again by one goroutine, with pauses
// that grow after failures, and halted where its history was lost.
func TestLoadingAgainIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("other items")
		n, e, l, sh := unwillingNode(t, 1, dibs.Unavail(dibs.EffectNone, errors.New("Redis is away")))
		again := func() error { return n.Loader.loadAgain(t.Context(), sh.ID, cause) }
		sh.reload.opening.Store(true)
		if err := again(); !errors.Is(err, cause) || l.epochs.Load() != 0 {
			t.Errorf("while another goroutine opens it: %v, and %d epochs", err, l.epochs.Load())
		}
		sh.reload.opening.Store(false)
		for range 60 {
			if err := again(); err == nil {
				t.Error("it was loaded")
			}
			<-time.After(time.Second)
		}
		// After pauses of 1, 2, 4 and then 5 seconds.
		if n := l.epochs.Load(); n < 12 || n > 15 {
			t.Errorf("%d epochs in a minute", n)
		}
		if e.halts != 0 {
			t.Error("it was halted for nothing")
		}
		e.err = dibs.ErrGap
		<-time.After(rejoinSoon)
		if err := again(); !errors.Is(err, dibs.ErrGap) || e.halts != 1 {
			t.Errorf("where history was lost: %v, and %d halts", err, e.halts)
		}
	})
}

// fewer is how an engine refuses a load by fewer shards than a shard goes by.
type fewer struct{ error }

func (fewer) NotDivided() bool { return true }

// A ledger of before a campaign had more shards costs a shard one epoch, until it has the
// shards again, or another server is there.
func TestALedgerThatDoesNotKnowTheShardsCostsNoEpochs(t *testing.T) {
	n, e, l, sh := unwillingNode(t, 1, dibs.Unavail(dibs.EffectNone, fewer{errors.New("by more shards")}))
	load := func(when string, epochs int64) {
		t.Helper()
		for range 5 {
			if err := n.Loader.loadOnce(t.Context(), sh); !errors.As(err, &fewer{}) {
				t.Errorf("%s: %v", when, err)
			}
		}
		if spent := l.epochs.Load(); spent != epochs {
			t.Errorf("%s: %d epochs were spent, want %d", when, spent, epochs)
		}
	}
	load("at first", 1)
	e.server = "another run"
	load("on another server", 2)
	l.c.Shards = 2
	load("with more shards", 3)
	e.err = dibs.Unavail(dibs.EffectNone, errors.New("Redis is away"))
	l.c.Shards = 3
	for range 2 {
		if err := n.Loader.loadOnce(t.Context(), sh); err == nil {
			t.Error("it was loaded")
		}
	}
	if spent := l.epochs.Load(); spent != 5 {
		t.Errorf("%d epochs, want 5: another failure is tried again", spent)
	}
}

// A campaign of several shards that cannot be loaded is tried again after pauses that grow,
// as one of one shard is: each attempt costs each shard an epoch.
func TestPausesOfSeveralShardsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, l, _ := unwillingNode(t, 3, dibs.Unavail(dibs.EffectNone, errors.New("Redis is away")))
		n.Registry.Drop(&l.c)
		for range 60 {
			c := l.c
			if err := n.Loader.Admit(t.Context(), &c); err == nil {
				t.Error("it was admitted")
			}
			<-time.After(time.Second)
		}
		if attempts := l.epochs.Load() / 3; attempts < 12 || attempts > 15 {
			t.Errorf("%d attempts in a minute", attempts)
		}
	})
}

// opening is an engine that opens a shard once ready is closed.
type opening struct {
	unwilling
	ready chan struct{}
}

func (e *opening) Open(context.Context, *dibs.Campaign, dibs.ShardID, *dibs.ShardLoad) error {
	<-e.ready
	return nil
}

// A campaign that is over is recalled by one load for all late payments that come while it
// lasts, however often the node looks for campaigns meanwhile: a second load would put an end
// to the first.
func TestARecallThatIsUnderWayIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &opening{ready: make(chan struct{})}
		l := &spending{c: dibs.Campaign{Number: 1, ID: "a", State: dibs.EndedState, Shards: 1, Version: 1}}
		n := newNode(t, Config{Engine: e, Ledger: l})
		var payments sync.WaitGroup
		for range 3 {
			payments.Go(func() {
				c := l.c
				if err := n.Loader.Recall(t.Context(), &c); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			n.Loader.forgetAdmissions(nil)
		}
		close(e.ready)
		payments.Wait()
		if n := l.epochs.Load(); n != 1 {
			t.Errorf("three late payments cost %d epochs", n)
		}
		if n.Loader.admitting() {
			t.Error("it is still on its way")
		}
	})
}

// A recall that fails is made again after pauses that grow, as other loads are. It keeps no
// node from being ready, and is forgotten some time after the last attempt.
func TestPausesOfRecallsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, l, _ := unwillingNode(t, 1, dibs.Unavail(dibs.EffectNone, errors.New("Redis is away")))
		n.Registry.Drop(&l.c)
		l.c.State = dibs.EndedState
		for range 60 {
			c := l.c
			if err := n.Loader.Recall(t.Context(), &c); err == nil {
				t.Error("it was recalled")
			}
			n.Loader.forgetAdmissions(nil)
			if err := n.CampaignsHealth(nil); err != nil || n.Loader.haltedCount() != 0 {
				t.Errorf("the node is not ready for a campaign that is over: %v", err)
			}
			<-time.After(time.Second)
			n.Loader.forgetAdmissions(nil)
		}
		if n := l.epochs.Load(); n < 12 || n > 15 {
			t.Errorf("%d epochs in a minute", n)
		}
		if !n.Loader.endedUnloaded.Load() {
			t.Error("nobody settles its last grants")
		}
		<-time.After(rejoinSoon + rejoinMax)
		if n.Loader.forgetAdmissions(nil); n.Loader.admitting() {
			t.Error("it is not forgotten")
		}
	})
}

// A pause reaches the engine from a node that lacks shards of the campaign. Its other
// changes wait until the node has those.
func TestAPauseReachesTheEngineWithoutAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e, l, sh := unwillingNode(t, 2, nil)
		looks := func() {
			for range 3 {
				if err := n.Poller.renew(t.Context(), sh.l, &l.c); err != nil {
					t.Fatal(err)
				}
				st := dibs.ShardStats{Version: 1}
				if k := len(e.configured); k > 0 {
					st.Version = e.configured[k-1]
				}
				n.Poller.keepVersion(t.Context(), sh, &st)
				<-time.After(time.Second)
			}
		}
		l.c.Version = 2
		looks()
		if len(e.configured) != 0 {
			t.Errorf("versions %v were sent before the new shards are there", e.configured)
		}
		l.c.Version, l.c.State = 3, dibs.PausedState
		looks()
		if len(e.configured) != 1 || e.configured[0] != 3 {
			t.Errorf("versions %v were sent, want the pause once", e.configured)
		}
		l.c.Version, l.c.State = 4, dibs.Published
		looks()
		// A shard that the pause has not reached is no exception.
		n.Poller.keepVersion(t.Context(), sh, &dibs.ShardStats{Version: 1})
		if len(e.configured) != 1 {
			t.Errorf("versions %v were sent before the new shards are there", e.configured)
		}
	})
}

// All shards that are waited for share one patience, also those that are there at last.
func TestPatienceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var p Patience
		for range 64 {
			for until := time.Now().Add(time.Second); time.Now().Before(until) && p.Wait(t.Context()); {
			}
		}
		if waited := time.Since(begun); waited < OpenPatience || waited > OpenPatience+JoinEvery {
			t.Errorf("64 shards were waited for %s", waited)
		}
	})
}
