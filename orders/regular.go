package orders

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/claims"
)

// Place sells units of a product's own stock: a regular order, beside those of
// campaigns. The ledger decides it, in one transaction; from then on it is a
// claim, and its life is that of all others. A refusal is a Result, as with
// Claim.
func (s *Orders) Place(ctx context.Context, req Request) (dibs.Result, error) {
	if req.Quantity == 0 {
		req.Quantity = 1
	}
	asked := &dibs.ClaimRequest{
		UserID: req.UserID, Quantity: req.Quantity, Key: req.Key, Device: req.Device, Reference: req.Reference,
		Until: req.Until, TokenID: req.TokenID, Issued: req.Issued,
	}
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
	if s.claims.TokenEnded(asked) {
		return dibs.Result{}, claims.ErrTokenEnded
	}
	res, err := s.order(ctx, Order{
		ProductID: req.ProductID, UserID: req.UserID, Quantity: req.Quantity, Key: dibs.KeyHash(req.Key), At: dibs.Ms(s.now()),
		MostHeld: s.mostHeld, Reference: req.Reference,
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

func (s *Orders) order(ctx context.Context, o Order) (dibs.Result, error) {
	got, err := s.ledger.Order(ctx, o)
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Result{}, dibs.NoSuchProduct
	}
	if err != nil {
		return dibs.Result{}, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	r := dibs.Result{Outcome: got.Outcome, Replayed: got.Replayed, Remaining: got.Remaining}
	if got.Outcome == dibs.LimitReached {
		r.Detail = dibs.Textf("at most %d unpaid units of a product per user", "每人最多持有 %d 件未付款的商品", s.mostHeld)
		r.ClaimIDs = make([]string, len(got.Held))
		for i, p := range got.Held {
			r.ClaimIDs[i] = s.ids.Encode(p)
		}
	}
	if got.Outcome == dibs.Paused {
		r.Detail = dibs.Text{EN: "the product is off sale", ZH: "该商品已下架"}
	}
	if got.Outcome == dibs.Granted && got.Replayed && got.Claim.Reference != o.Reference && o.Reference != "" {
		r.Outcome = dibs.KeyReused
		return r, nil
	}
	if got.Outcome == dibs.Granted {
		r.Claim, r.Campaign = s.claims.Fill(got.Campaign, got.Claim), got.Campaign
		if !got.Replayed {
			s.claims.CountGranted()
		}
	}
	return r, nil
}

// reorder takes stock of a product again for a late payer.
func (s *Orders) reorder(ctx context.Context, c *dibs.Campaign, claim *dibs.Claim, key uint64) (*dibs.Grant, error) {
	r, err := s.order(ctx, Order{ProductID: c.ProductID, UserID: claim.UserID, Quantity: claim.Quantity, Key: key, At: dibs.Ms(s.now()), Late: true, Amount: claim.Amount, Reference: claim.Reference})
	if err != nil || r.Outcome != dibs.Granted {
		return nil, err
	}
	return &dibs.Grant{Position: r.Claim.Position, UserID: claim.UserID, Quantity: claim.Quantity}, nil
}

// Request asks for units of a product's own stock.
type Request struct {
	ProductID string
	UserID    string
	// Quantity is how many units; 0 means 1.
	Quantity int64
	// Key identifies the request, so that a repeat returns the first result;
	// empty for a request that cannot be repeated. Scoped to user and product.
	Key string
	// Reference is the caller's own, and comes back with the claim.
	Reference string
	// Address and Device are where the client is and what it calls itself, for the
	// limits and lists of the server, as in ClaimRequest.
	Address netip.Addr
	Device  string
	// Until is when the client's token ends, TokenID its own name and Issued when it was issued, as in ClaimRequest: an
	// order that has waited for the ledger is refused when the token is not valid any more.
	Until   time.Time
	TokenID string
	Issued  time.Time
}

// Order is a Request as the ledger takes it: validated, with its key hashed and the server's
// bounds filled in.
type Order struct {
	ProductID string
	UserID    string
	Quantity  int64
	// Key is the hash of the request's key, 0 for none.
	Key uint64
	At  time.Time
	// Reference is stored with the claim; empty for none.
	Reference string
	// Late says that the order stands for one that was paid too late: it costs
	// Amount, what that one cost.
	Late   bool
	Amount *dibs.Money
	// MostHeld is how many units of the product the user may hold with this order:
	// unpaid ones, and where a product sets no time to pay, all that are not given
	// back. 0 is for no bound, and a Late order has none.
	MostHeld int64
}

// Result is what became of an Order.
type Result struct {
	Outcome  dibs.Reason
	Replayed bool
	// Claim and Campaign are set when the Outcome is Granted.
	Claim    *dibs.Claim
	Campaign *dibs.Campaign
	// Remaining is what is left, with SoldOut.
	Remaining int64
	// Held are the places of the orders that fill MostHeld, with LimitReached.
	Held []dibs.Position
}
