package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// TestTokenThatEndsBeforeTheOrder: an order whose token ended while it waited for the ledger is not brought before it.
func TestTokenThatEndsBeforeTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &orderLedger{takes: time.Second}
		s := newBounded(t, l)
		var crowd sync.WaitGroup
		for i := range maxOrders {
			crowd.Go(func() {
				if _, err := s.Place(t.Context(), Request{ProductID: "p", UserID: fmt.Sprint("u", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ends := time.Now().Add(500 * time.Millisecond)
		if _, err := s.Place(t.Context(), Request{ProductID: "p", UserID: "late", Until: ends}); !errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}) {
			t.Errorf("with a token that ended: %v", err)
		}
		crowd.Wait()
		if _, err := s.Place(t.Context(), Request{ProductID: "p", UserID: "late", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Errorf("with one that goes on: %v", err)
		}
	})
}

// Regular orders come before the ledger some at a time; those that wait too long,
// or are too many, are refused, and sold nothing.
func TestRegularOrdersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &orderLedger{}
		s := newBounded(t, l)
		order := func(n int) (sold, overloaded int64) {
			var ok, refused atomic.Int64
			var crowd sync.WaitGroup
			for i := range n {
				crowd.Go(func() {
					res, err := s.Place(t.Context(), Request{ProductID: "p", UserID: fmt.Sprint("u", i)})
					switch {
					case errors.Is(err, dibs.ErrOverloaded):
						refused.Add(1)
					case err != nil || res.Outcome != dibs.SoldOut:
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

func newBounded(t *testing.T, l Ledger) *Orders {
	node := live.New(live.Config{Now: time.Now, Life: t.Context()})
	return New(Config{
		Live: node, Claims: claims.New(claims.Config{Live: node}), Ledger: l, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		LedgerTimeout: 5 * time.Second, SweepEvery: time.Second, Life: t.Context(),
	})
}

// orderLedger has nothing to sell, and takes its time to say so.
type orderLedger struct {
	Ledger
	takes     time.Duration
	now, most atomic.Int64
}

func (l *orderLedger) Order(ctx context.Context, _ Order) (Result, error) {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	wait.Sleep(ctx, l.takes)
	return Result{Outcome: dibs.SoldOut}, nil
}

// An order that the ledger did not take is told as a claim is.
func TestEffectsOfOrdersNotDecided(t *testing.T) {
	s := newBounded(t, &away{err: dibs.Unavail(dibs.EffectNone, errors.New("too many at once"))})
	for key, want := range map[string]dibs.Effect{"": dibs.EffectNone, "press-1": dibs.EffectUnknown} {
		_, err := s.Place(t.Context(), Request{ProductID: "tea", UserID: "ann", Key: key})
		if e := (*dibs.Error)(nil); !errors.As(err, &e) || e.Effect != want {
			t.Errorf("with the key %q: %+v, want the effect %s", key, e, want)
		}
	}
}

// away is a ledger that cannot be asked.
type away struct {
	Ledger
	err error
}

func (l *away) Order(context.Context, Order) (Result, error) {
	return Result{}, l.err
}
