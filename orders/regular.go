package orders

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/dibs-dev/dibs"
)

// Place sells units of a product's own stock: a regular order, beside those of
// campaigns. The ledger decides it, in one transaction; from then on it is a
// claim, and its life is that of all others. A refusal is a Result, as with
// Claim.
func (s *Orders) Place(ctx context.Context, req dibs.OrderRequest) (dibs.Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	asked := &dibs.ClaimRequest{UserID: req.UserID, Quantity: req.Quantity, Key: req.Key}
	fs := asked.Faults()
	if req.Quantity > dibs.MaxLimitPerUser && req.Quantity <= math.MaxInt32 {
		fs = append(fs, dibs.Fault{Field: "/quantity", Problem: dibs.Textf("must be from 1 to %d", "必须在 1 到 %d 之间", dibs.MaxLimitPerUser)})
	}
	if len(fs) > 0 {
		return dibs.Result{}, dibs.Invalid(fs...)
	}
	done, err := s.mayOrder(ctx, asked.Effect())
	if err != nil {
		return dibs.Result{}, err
	}
	defer done()
	res, err := s.order(ctx, dibs.Order{
		ProductID: req.ProductID, UserID: req.UserID, Quantity: req.Quantity, Key: dibs.KeyHash(req.Key), At: dibs.Ms(s.now()),
	})
	return res, asked.Unlooked(err)
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
func (s *Orders) mayOrder(ctx context.Context, effect dibs.Effect) (done func(), err error) {
	tooMany := &dibs.Error{Reason: dibs.Overloaded, Effect: effect, RetryAfter: time.Second, Detail: tooManyOrders}
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
		err = dibs.Unavail(effect, ctx.Err())
	}
	s.ordering.Add(-1)
	return nil, err
}

var tooManyOrders = dibs.Text{EN: "too many orders wait for the ledger", ZH: "等待处理的订单过多"}

func (s *Orders) order(ctx context.Context, o dibs.Order) (dibs.Result, error) {
	got, err := s.ledger.Order(ctx, o)
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Result{}, dibs.NoSuchProduct
	}
	if err != nil {
		return dibs.Result{}, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	r := dibs.Result{Outcome: got.Outcome, Replayed: got.Replayed, Remaining: got.Remaining}
	if got.Outcome == dibs.Granted {
		r.Claim, r.Campaign = s.claims.Dress(got.Campaign, got.Claim), got.Campaign
		if !got.Replayed {
			s.claims.CountGranted()
		}
	}
	return r, nil
}

// reorder takes stock of a product again for a late payer.
func (s *Orders) reorder(ctx context.Context, c *dibs.Campaign, claim *dibs.Claim, key uint64) (*dibs.Grant, error) {
	r, err := s.order(ctx, dibs.Order{ProductID: c.ProductID, UserID: claim.UserID, Quantity: claim.Quantity, Key: key, At: dibs.Ms(s.now()), Late: true, Amount: claim.Amount})
	if err != nil || r.Outcome != dibs.Granted {
		return nil, err
	}
	return &dibs.Grant{Position: r.Claim.Position, UserID: claim.UserID, Quantity: claim.Quantity}, nil
}
