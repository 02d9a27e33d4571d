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
// it. What is not overridden is not called.
type packetLedger struct {
	Ledger
	mu    sync.Mutex
	open  []*OpenPacket
	calls map[string]int
	// aside is what is in quarantine.
	aside []dibs.Quarantined
	// credit is what crediting a campaign does.
	credit func(id string) error
	home   func(id string) (bool, error)
}

func (l *packetLedger) OpenPackets(context.Context) ([]*OpenPacket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*OpenPacket{}, l.open...), nil
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

func (q quarantine) Quarantined(context.Context, uint32, int) ([]dibs.Quarantined, error) {
	return q.of.aside, nil
}

// alone is an engine of one process.
type alone struct{ dibs.Engine }

func (alone) Shared() bool { return false }

// tendingService tends red packets a to f.
func tendingService(t *testing.T, log *strings.Builder) (*Funds, *packetLedger) {
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
func TestRedPacketsAreTendedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, l := tendingService(t, &log)
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
		if n := s.packets.troubled(); n != 2 || s.packetProblem(2) == "" || s.packetProblem(4) != "" {
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
		s, l := tendingService(t, &log)
		l.open = l.open[:1]
		l.open[0].Behind = false
		l.aside = []dibs.Quarantined{{Shard: dibs.ShardID{Campaign: 1}}}
		s.aside.ReadQuarantine(t.Context())
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
		if s.packets.troubled() != 1 || !strings.Contains(s.packetProblem(1), "in quarantine") || !strings.Contains(log.String(), "in_quarantine=1") {
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
		s.packets.again(1)
		wait.Sleep(ctx, 2*s.every)
		synctest.Wait()
		if len(l.open) != 0 || s.packets.troubled() != 0 {
			t.Errorf("it does not come home: %d open, %d in trouble", len(l.open), s.packets.troubled())
		}
		cancel()
		all.Wait()
	})
}
