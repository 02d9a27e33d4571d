package dibs

import (
	"context"
	"errors"
	"math"
	"time"
)

// OrderRequest asks for units of a product's own stock.
type OrderRequest struct {
	ProductID string
	UserID    string
	// Quantity is how many units; 0 means 1.
	Quantity int64
	// Key identifies the request, so that a repeat returns the first result;
	// empty for a request that cannot be repeated. Scoped to user and product.
	Key string
}

// Order sells units of a product's own stock: a regular order, beside those of
// campaigns. The ledger decides it, in one transaction; from then on it is a
// claim, and its life is that of all others. A refusal is a Result, as with
// Claim.
func (s *Service) Order(ctx context.Context, req OrderRequest) (Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	asked := &ClaimRequest{UserID: req.UserID, Quantity: req.Quantity, Key: req.Key}
	fs := asked.faults()
	if req.Quantity > MaxLimitPerUser && req.Quantity <= math.MaxInt32 {
		fs = append(fs, Fault{"/quantity", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxLimitPerUser)})
	}
	if len(fs) > 0 {
		return Result{}, Invalid(fs...)
	}
	done, err := s.mayOrder(ctx, asked.effect())
	if err != nil {
		return Result{}, err
	}
	defer done()
	res, err := s.order(ctx, Order{
		ProductID: req.ProductID, UserID: req.UserID, Quantity: req.Quantity, Key: keyHash(req.Key), At: ms(s.cfg.Now()),
	})
	return res, asked.unlooked(err)
}

const (
	// maxOrders is how many regular orders a node brings before the ledger at a
	// time, so that the other steps of claims find a connection, and ordersWaiting
	// how many may wait for that, for orderPatience.
	maxOrders     = 16
	ordersWaiting = 2048
	orderPatience = 5 * time.Second
)

// mayOrder waits for a place before the ledger; done gives it back. *Error of
// Overloaded, with the effect given, when too many wait already, or for too long.
func (s *Service) mayOrder(ctx context.Context, effect Effect) (done func(), err error) {
	tooMany := &Error{Reason: Overloaded, Effect: effect, RetryAfter: time.Second, Detail: tooManyOrders}
	if s.ordering.Add(1) > maxOrders+ordersWaiting {
		s.ordering.Add(-1)
		return nil, tooMany
	}
	patience := time.NewTimer(orderPatience)
	defer patience.Stop()
	select {
	case s.orders <- struct{}{}:
		return func() { <-s.orders; s.ordering.Add(-1) }, nil
	case <-patience.C:
		err = tooMany
	case <-ctx.Done():
		err = Unavail(effect, ctx.Err())
	}
	s.ordering.Add(-1)
	return nil, err
}

var tooManyOrders = Text{"too many orders wait for the ledger", "等待处理的订单过多"}

func (s *Service) order(ctx context.Context, o Order) (Result, error) {
	got, err := s.ledger.Order(ctx, o)
	if errors.Is(err, ErrNotFound) {
		return Result{}, noSuchProduct
	}
	if err != nil {
		return Result{}, asUnavailable(err, EffectUnknown)
	}
	r := Result{Outcome: got.Outcome, Replayed: got.Replayed, Remaining: got.Remaining}
	if got.Outcome == Granted {
		r.Claim, r.Campaign = s.dress(got.Campaign, got.Claim), got.Campaign
		if !got.Replayed {
			s.counters.granted.Add(1)
		}
	}
	return r, nil
}

// reorder takes stock of a product again for a late payer.
func (s *Service) reorder(ctx context.Context, c *Campaign, claim *Claim, key uint64) (*Grant, error) {
	r, err := s.order(ctx, Order{ProductID: c.ProductID, UserID: claim.UserID, Quantity: claim.Quantity, Key: key, At: ms(s.cfg.Now()), Late: true, Amount: claim.Amount})
	if err != nil || r.Outcome != Granted {
		return nil, err
	}
	return &Grant{Position: r.Claim.Position, UserID: claim.UserID, Quantity: claim.Quantity}, nil
}
