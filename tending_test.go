package dibs

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
)

// packetLedger has red packets that ended long ago, and counts what is asked of
// it. What is not overridden is not called.
type packetLedger struct {
	Ledger
	mu    sync.Mutex
	open  []*OpenPacket
	calls map[string]int
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

func (l *packetLedger) CreditClaims(_ context.Context, c *Campaign, _ time.Time, _ int) (int, error) {
	l.count("credit " + c.ID)
	return 0, l.credit(c.ID)
}

func (l *packetLedger) ReturnRemainder(_ context.Context, c *Campaign, _ time.Time) (bool, error) {
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

// tendingService tends red packets a to f.
func tendingService(t *testing.T, log *strings.Builder) (*Service, *packetLedger) {
	l := &packetLedger{calls: map[string]int{}}
	for i, id := range []string{"a", "b", "c", "d", "e", "f"} {
		l.open = append(l.open, &OpenPacket{Behind: true, Campaign: &Campaign{
			ID: id, Number: uint32(i + 1), Kind: RedPacket, State: EndedState, Packet: &RedPacketSpec{Total: Money{1, "CNY"}},
		}})
	}
	cfg := Config{Logger: slog.New(slog.NewTextHandler(log, nil))}.WithDefaults()
	return &Service{cfg: cfg, ledger: l, log: cfg.Logger}, l
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
				return fmt.Errorf("%w: planted", ErrCorrupt)
			case "c":
				return Unavail(EffectUnknown, errors.New("planted"))
			}
			return nil
		}
		l.home = func(string) (bool, error) { return true, nil }
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() { s.packetLoop(ctx) })
		sleep(ctx, 2*s.cfg.CreditEvery)
		synctest.Wait()
		for _, id := range []string{"d", "e", "f"} {
			if n := l.counted("return " + id); n != 1 {
				t.Errorf("after %s, %s was returned %d times", time.Since(began), id, n)
			}
		}
		sleep(ctx, 10*time.Minute)
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
		aside := []Quarantined{{Shard: ShardID{Campaign: 1}}}
		s.inQuarantine.Store(&aside)
		l.credit = func(string) error { return nil }
		var mended atomic.Bool
		l.home = func(string) (bool, error) { return mended.Load(), nil }
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { s.packetLoop(ctx) })
		sleep(ctx, 10*time.Minute)
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
		sleep(ctx, 10*s.cfg.CreditEvery)
		synctest.Wait()
		if n := l.counted("credit a"); n < 9 {
			t.Errorf("shares were credited %d times in ten rounds", n)
		}
		mended.Store(true)
		s.packets.again(1)
		sleep(ctx, 2*s.cfg.CreditEvery)
		synctest.Wait()
		if len(l.open) != 0 || s.packets.troubled() != 0 {
			t.Errorf("it does not come home: %d open, %d in trouble", len(l.open), s.packets.troubled())
		}
		cancel()
		all.Wait()
	})
}

// Regular orders come before the ledger some at a time; those that wait too long,
// or are too many, are refused, and sold nothing.
func TestRegularOrdersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &orderLedger{}
		s := &Service{cfg: Config{}.WithDefaults(), ledger: l, orders: make(chan struct{}, maxOrders)}
		order := func(n int) (sold, overloaded int64) {
			var ok, refused atomic.Int64
			var crowd sync.WaitGroup
			for i := range n {
				crowd.Go(func() {
					res, err := s.Order(t.Context(), OrderRequest{ProductID: "p", UserID: fmt.Sprint("u", i)})
					switch {
					case errors.Is(err, ErrOverloaded):
						refused.Add(1)
					case err != nil || res.Outcome != SoldOut:
						t.Errorf("%+v, %v", res, err)
					default:
						ok.Add(1)
					}
				})
			}
			crowd.Wait()
			return ok.Load(), refused.Load()
		}
		l.takes = 10 * time.Millisecond
		if sold, refused := order(1500); sold != 1500 || refused != 0 {
			t.Errorf("of 1500 orders %d came through, %d did not", sold, refused)
		}
		if n := l.most.Load(); n != maxOrders {
			t.Errorf("%d were before the ledger at once", n)
		}
		if sold, refused := order(4000); sold != maxOrders+ordersWaiting || sold+refused != 4000 {
			t.Errorf("of 4000 orders %d came through, %d did not", sold, refused)
		}
		l.takes = time.Second
		began := time.Now()
		if _, refused := order(500); refused == 0 || time.Since(began) > orderPatience+2*time.Second {
			t.Errorf("%d of 500 were refused within %s", refused, time.Since(began))
		}
		if n := s.ordering.Load(); n != 0 || len(s.orders) != 0 {
			t.Errorf("%d places are never given back", n)
		}
	})
}

// orderLedger has nothing to sell, and takes its time to say so.
type orderLedger struct {
	Ledger
	takes     time.Duration
	now, most atomic.Int64
}

func (l *orderLedger) Order(ctx context.Context, _ Order) (OrderResult, error) {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	sleep(ctx, l.takes)
	return OrderResult{Outcome: SoldOut}, nil
}
