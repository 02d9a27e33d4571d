package funds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// packetLedger has red packets that ended long ago, and counts what is asked of
// it. Methods that are not overridden are not called.
type packetLedger struct {
	Ledger
	mu    sync.Mutex
	open  []*OpenPacket
	calls map[string]int
	// aside is what is in quarantine.
	aside []live.Quarantined
	// credit is what crediting a campaign does.
	credit func(id string) error
	home   func(id string) (bool, error)
	// away is what listing fails with.
	away error
}

func (l *packetLedger) OpenPackets(context.Context) ([]*OpenPacket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*OpenPacket{}, l.open...), l.away
}

// isAway has listing fail from now on, or with nil not any more.
func (l *packetLedger) isAway(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = err
}

func (l *packetLedger) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[what]++
}

func (l *packetLedger) counted(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[what]
}

func (l *packetLedger) CreditClaims(_ context.Context, c *dibs.Campaign, _ time.Time, _ int) (int, error) {
	l.count("credit " + c.ID)
	return 0, l.credit(c.ID)
}

func (l *packetLedger) ReturnRemainder(_ context.Context, c *dibs.Campaign, _ time.Time) (bool, error) {
	l.count("return " + c.ID)
	home, err := l.home(c.ID)
	if home {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, p := range l.open {
			if p.Campaign.ID == c.ID {
				l.open = append(l.open[:i:i], l.open[i+1:]...)
				break
			}
		}
	}
	return home, err
}

// quarantine is the ledger as the node reads it.
type quarantine struct {
	live.Ledger
	of *packetLedger
}

func (q quarantine) Quarantined(context.Context, live.QuarantineFilter, int) ([]live.Quarantined, error) {
	return q.of.aside, nil
}

// alone is an engine of one process.
type alone struct{ dibs.Engine }

func (alone) Shared() bool { return false }

// packetService works on red packets a to f.
func packetService(t *testing.T, log *strings.Builder) (*Funds, *packetLedger) {
	l := &packetLedger{calls: map[string]int{}}
	for i, id := range []string{"a", "b", "c", "d", "e", "f"} {
		l.open = append(l.open, &OpenPacket{Behind: true, Campaign: &dibs.Campaign{
			ID: id, Number: uint32(i + 1), Kind: dibs.RedPacket, State: dibs.EndedState, Packet: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 1, Currency: "CNY"}},
		}})
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	node := live.New(live.Config{Engine: alone{}, Ledger: quarantine{of: l}, Logger: logger, Now: time.Now, Life: t.Context()})
	return New(Config{Live: node, Ledger: l, Logger: logger, Now: time.Now, Every: 500 * time.Millisecond}), l
}

// One red packet that never comes back from the ledger holds nobody up, and two
// that fail are tried less and less often.
func TestRedPacketsAreProcessedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, l := packetService(t, &log)
		ctx, cancel := context.WithCancel(t.Context())
		l.credit = func(id string) error {
			switch id {
			case "a":
				<-ctx.Done()
				return ctx.Err()
			case "b":
				return fmt.Errorf("%w: planted", dibs.ErrCorrupt)
			case "c":
				return dibs.Unavail(dibs.EffectUnknown, errors.New("planted"))
			}
			return nil
		}
		l.home = func(string) (bool, error) { return true, nil }
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() { s.Loop(ctx) })
		wait.Sleep(ctx, 2*s.every)
		synctest.Wait()
		for _, id := range []string{"d", "e", "f"} {
			if n := l.counted("return " + id); n != 1 {
				t.Errorf("after %s, %s was returned %d times", time.Since(began), id, n)
			}
		}
		wait.Sleep(ctx, 10*time.Minute)
		synctest.Wait()
		if n := l.counted("credit a"); n != 1 {
			t.Errorf("the one that is stuck was taken up %d times", n)
		}
		if n := l.counted("credit b"); n < 10 || n > 20 {
			t.Errorf("the one with a fault was tried %d times in 10 minutes", n)
		}
		if n := l.counted("credit c"); n < 100 || n > 130 {
			t.Errorf("the one that the ledger did not answer for was tried %d times in 10 minutes", n)
		}
		if n := s.packets.troubled(); n != 2 || s.packetProblem(2).EN == "" || s.packetProblem(2).ZH == "" || s.packetProblem(4).EN != "" {
			t.Errorf("%d are in trouble, %q, %q", n, s.packetProblem(2), s.packetProblem(4))
		}
		cancel()
		all.Wait()
		if !strings.Contains(log.String(), "campaign=b again_in=1m0s") {
			t.Errorf("the log does not say when it is tried again:\n%s", log.String())
		}
	})
}

// A remainder that has to wait is asked for less and less often, and credited
// as ever; what was mended is tried at once.
func TestARemainderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, l := packetService(t, &log)
		l.open = l.open[:1]
		l.open[0].Behind = false
		l.aside = []live.Quarantined{{Shard: dibs.ShardID{Campaign: 1}}}
		s.quarantine.ReadQuarantine(t.Context())
		l.credit = func(string) error { return nil }
		var mended atomic.Bool
		l.home = func(string) (bool, error) { return mended.Load(), nil }
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { s.Loop(ctx) })
		wait.Sleep(ctx, 10*time.Minute)
		synctest.Wait()
		if n := l.counted("return a"); n < 10 || n > 20 {
			t.Errorf("the remainder was asked for %d times in 10 minutes", n)
		}
		if s.packets.troubled() != 1 || !strings.Contains(s.packetProblem(1).EN, "1 of its journal entries are in quarantine") || !strings.HasPrefix(s.packetProblem(1).ZH, "有 1 条日志记录处于隔离中") || !strings.Contains(log.String(), "in_quarantine=1") {
			t.Errorf("nobody is told: %q, %s", s.packetProblem(1), log.String())
		}
		l.mu.Lock()
		l.open = []*OpenPacket{{Behind: true, Campaign: l.open[0].Campaign}}
		l.mu.Unlock()
		wait.Sleep(ctx, 10*s.every)
		synctest.Wait()
		if n := l.counted("credit a"); n < 9 {
			t.Errorf("shares were credited %d times in ten rounds", n)
		}
		mended.Store(true)
		s.packets.retryNow(1)
		wait.Sleep(ctx, 2*s.every)
		synctest.Wait()
		if len(l.open) != 0 || s.packets.troubled() != 0 {
			t.Errorf("it does not come home: %d open, %d in trouble", len(l.open), s.packets.troubled())
		}
		cancel()
		all.Wait()
	})
}

// packetEngine is an engine with a red packet over two shards, of which the first has
// left shares, and receives as many as it gives once it is empty, arrivals times.
type packetEngine struct {
	dibs.Engine
	clocks   [2]int64
	left     int64
	moved    int64
	arrivals int
	refs     map[string]bool
	// asked bounds how often the engine is asked.
	asked int
}

func (e *packetEngine) Stats(_ context.Context, shard dibs.ShardID) (dibs.ShardStats, error) {
	if e.asked++; e.asked > 50 {
		return dibs.ShardStats{}, errors.New("asked without an end")
	}
	return dibs.ShardStats{Now: e.clocks[shard.Shard], Remaining: e.left, Moved: e.moved}, nil
}

func (e *packetEngine) Adjust(_ context.Context, a dibs.Adjustment) error {
	if e.refs[a.Ref] {
		return nil
	}
	e.refs[a.Ref] = true
	e.left += a.Delta
	if e.left == 0 && e.arrivals > 0 {
		e.arrivals--
		e.left -= a.Delta
		e.moved += a.Delta
	}
	return nil
}

// Units that a shard receives after it was emptied are withdrawn too, although they are as
// many as were withdrawn before: the engine would take a step of the same name for a repeat.
func TestSharesThatArriveAreTakenOut(t *testing.T) {
	e := &packetEngine{left: 5, arrivals: 3, refs: map[string]bool{}}
	s := &Funds{engine: e}
	c := &dibs.Campaign{Number: 1, Shards: 2}
	if err := s.withdrawAll(t.Context(), c, dibs.ShardID{Campaign: 1}); err != nil || e.left != 0 || len(e.refs) != 4 {
		t.Errorf("%d shares are left after %d withdrawals: %v", e.left, len(e.refs), err)
	}
	// Another shard with as many left: the ledger knows a ref once in a campaign.
	e.left, e.moved, e.arrivals = 5, 0, 0
	if err := s.withdrawAll(t.Context(), c, dibs.ShardID{Campaign: 1, Shard: 1}); err != nil || e.left != 0 || len(e.refs) != 5 {
		t.Errorf("%d shares of the other shard are left after %d withdrawals: %v", e.left, len(e.refs), err)
	}
}

// A red packet is over when it is over by the clock of every shard's server.
func TestTheSlowestClockEndsARedPacket(t *testing.T) {
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	e := &packetEngine{clocks: [2]int64{ends.Add(time.Minute).UnixMilli(), ends.UnixMilli()}}
	s := &Funds{engine: e, now: func() time.Time { return ends.Add(time.Hour) }}
	c, err := s.endPacket(t.Context(), &dibs.Campaign{Number: 1, Shards: 2, State: dibs.Published, EndsAt: ends})
	if err != nil || c.State != dibs.Published || e.asked != 2 {
		t.Errorf("it is %s after %d shards were asked: %v", c.State, e.asked, err)
	}
}

// That red packets cannot be listed is logged at once, then once a minute, and so is its end.
func TestOutageIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, l := packetService(t, &log)
		l.open = nil
		l.isAway(errors.New("connection refused"))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { s.Loop(ctx) })
		wait.Sleep(ctx, 130*time.Second)
		l.isAway(nil)
		wait.Sleep(ctx, time.Second)
		cancel()
		all.Wait()
		for line, want := range map[string]int{"the open red packets could not be listed": 3, "the open red packets can be listed again": 1} {
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("%d lines, not %d, say that %s:\n%s", n, want, line, log.String())
			}
		}
	})
}
