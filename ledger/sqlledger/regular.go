package sqlledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/orders"
)

// RegularOrders sells products' own stock.
//
// A product that was ever ordered has one campaign of RegularState with one
// shard, in whose row its orders are counted as claims are everywhere; no
// engine opens it. The stock of the product, of the campaign and of the shard
// are the same. The shard's row is locked first, so that orders of one product
// are decided one after the other, then the campaign's and the product's.
type RegularOrders struct{ db *sqldb.DB }

// regularEpoch is the epoch of all regular orders: no engine ever raises it.
const regularEpoch = 1

// Order sells units of a product's stock if so much is left, and returns the
// claim, in one transaction. Price and time to pay are the product's at that
// moment. A repeat of the key returns the first claim. The outcome is Granted,
// Paused while the product is off sale, SoldOut with what remains, or KeyReused for a repeat with another quantity;
// nothing is written then. ErrNotFound; an *Error of InvalidRequest for an
// amount that is too large.
func (ro *RegularOrders) Order(ctx context.Context, o orders.Order) (orders.Result, error) {
	var res orders.Result
	number, err := ro.campaign(ctx, o.ProductID)
	if err != nil {
		return res, err
	}
	err = ro.db.Write(ctx, "order of product "+o.ProductID, func(s *sqldb.Session) error {
		res = orders.Result{Campaign: &dibs.Campaign{}}
		var seq, left int64
		if err := s.Row(ctx, `SELECT pos_seq, stock_left FROM positions WHERE campaign = ? AND shard = 0`+s.ForUpdate,
			[]any{number}, &seq, &left); err != nil {
			return err
		}
		if err := readCampaign(ctx, s, number, res.Campaign); err != nil {
			return err
		}
		// After the lock: a repeat that runs beside its first attempt waits for
		// it, and finds its claim.
		if done, err := repeatedOrder(ctx, s, number, &o, &res); done || err != nil {
			return err
		}
		now, err := termsOf(ctx, s, o.ProductID)
		if err != nil {
			return err
		}
		switch {
		case now.offSale && !o.Late:
			res.Outcome = dibs.Paused
			return nil
		case left < o.Quantity:
			res.Outcome, res.Remaining = dibs.SoldOut, left
			return nil
		}
		if full, err := filled(ctx, s, number, &o, &now, &res); full || err != nil {
			return err
		}
		if seq == math.MaxUint32 {
			return dibs.Unavail(dibs.EffectNone, fmt.Errorf("product %s has no room for more orders", o.ProductID))
		}
		claim, err := newOrder(&o, &now)
		if err != nil {
			return err
		}
		// The position is the order's number in the shard: the lock on the row
		// makes it unique.
		claim.Position = dibs.Position{ShardID: dibs.ShardID{Campaign: number}, Cursor: dibs.Cursor{Epoch: regularEpoch, Seq: uint32(seq + 1)}}
		res.Outcome, res.Claim = dibs.Granted, claim
		return writeOrder(ctx, s, &o, claim)
	})
	return res, err
}

// repeatedOrder finds the first result of an order that is repeated.
func repeatedOrder(ctx context.Context, s *sqldb.Session, number uint32, o *orders.Order, res *orders.Result) (bool, error) {
	if o.Key == 0 {
		return false, nil
	}
	found, err := sqldb.List(ctx, s, `SELECT `+claimColumns+` FROM claims WHERE `+byKey, []any{o.UserID, number, int64(o.Key)}, scanClaim)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if res.Outcome = dibs.Granted; found[0].Quantity != o.Quantity {
		res.Outcome = dibs.KeyReused
		return true, nil
	}
	if res.Claim, res.Replayed = &found[0], true; o.Reference != "" {
		if err := readNotes(ctx, s, pointers(found)); err != nil {
			return true, err
		}
	}
	return true, applyEvents(ctx, s, pointers(found))
}

// filled reports whether an order would give its user more than MostHeld. The lock on the
// shard's row makes orders of one product happen one after another, so that two at once
// cannot both find room.
func filled(ctx context.Context, s *sqldb.Session, number uint32, o *orders.Order, now *terms, res *orders.Result) (bool, error) {
	if o.Late || o.MostHeld == 0 {
		return false, nil
	}
	last := dibs.Confirmed
	if now.payWithin > 0 {
		last = dibs.Pending
	}
	units := o.Quantity
	// An order has a unit at least: no more rows count than units may be held.
	err := s.Each(ctx, `SELECT epoch, seq, quantity FROM claims WHERE user_id = ? AND campaign = ? AND status >= ? AND status <= ? LIMIT ?`,
		[]any{o.UserID, number, int64(dibs.Pending), int64(last), o.MostHeld}, func(rows *sql.Rows) error {
			p, quantity := dibs.Position{ShardID: dibs.ShardID{Campaign: number}}, int64(0)
			if err := rows.Scan(&p.Epoch, &p.Seq, &quantity); err != nil {
				return err
			}
			units += quantity
			res.Held = append(res.Held, p)
			return nil
		})
	if err != nil || units <= o.MostHeld {
		res.Held = nil
		return false, err
	}
	res.Outcome = dibs.LimitReached
	return true, nil
}

// terms are a product's at the moment of an order.
type terms struct {
	price    int64
	currency string
	// payWithin is in milliseconds, 0 for orders that need no payment.
	payWithin int64
	offSale   bool
}

func termsOf(ctx context.Context, s *sqldb.Session, product string) (t terms, err error) {
	var status int64
	err = s.Row(ctx, `SELECT price, currency, pay_within_ms, status FROM products WHERE id = ?`, []any{product}, &t.price, &t.currency, &t.payWithin, &status)
	t.offSale = status == productOffSale
	return t, err
}

// newOrder is the claim of an order at the product's price and terms. A late
// order costs what the order cost that it stands for.
func newOrder(o *orders.Order, now *terms) (*dibs.Claim, error) {
	claim := &dibs.Claim{
		UserID: o.UserID, Quantity: o.Quantity, Status: dibs.Confirmed, OrderType: dibs.RegularOrder, Amount: o.Amount, CreatedAt: o.At,
		UpdatedAt: o.At, Reference: o.Reference,
	}
	if !o.Late {
		if now.price > 0 && o.Quantity > (dibs.MaxMinor-1)/now.price {
			return nil, dibs.Invalid(dibs.Fault{Field: "/quantity", Problem: dibs.Textf(
				"times the price must stay below %d", "与价格的乘积必须小于 %d", dibs.MaxMinor)})
		}
		claim.Amount = joinMoney(now.price*o.Quantity, now.currency)
	}
	if now.payWithin > 0 {
		claim.Status, claim.PayBy = dibs.Pending, fromMS(o.At.UnixMilli()+now.payWithin)
	}
	return claim, nil
}

// writeOrder takes the stock, by compare-and-set, and writes the claim.
func writeOrder(ctx context.Context, s *sqldb.Session, o *orders.Order, claim *dibs.Claim) error {
	number, q := claim.Position.Campaign, o.Quantity
	pending, confirmed := int64(0), q
	if claim.Status == dibs.Pending {
		pending, confirmed = q, 0
	}
	// All three stocks are the same number. Each UPDATE asks for it once more:
	// a row that disagrees undoes the order.
	for _, take := range []query{
		{`UPDATE positions SET pos_seq = pos_seq + 1, stock_left = stock_left - ?, pending = pending + ?, confirmed = confirmed + ?
			WHERE campaign = ? AND shard = 0 AND pos_seq = ? AND stock_left >= ?`, []any{q, pending, confirmed, number, claim.Position.Seq - 1, q}},
		{`UPDATE campaigns SET stock_left = stock_left - ? WHERE number = ? AND stock_left >= ?`, []any{q, number, q}},
		{`UPDATE products SET stock_left = stock_left - ? WHERE id = ? AND stock_left >= ?`, []any{q, o.ProductID, q}},
	} {
		n, err := s.Exec(ctx, take.statement, take.args...)
		if err == nil && n != 1 {
			err = fmt.Errorf("%w: the stock of product %s is not what its campaign has", dibs.ErrCorrupt, o.ProductID)
		}
		if err != nil {
			return err
		}
	}
	amount, currency := splitMoney(claim.Amount)
	w := rowWriter{to: &formsFor(s).claims, width: 7, head: []any{
		int64(number), int64(0), nil, int64(claim.Status), int64(dibs.RegularOrder), currency,
	}}
	if err := w.begin(ctx, s, regularEpoch); err != nil {
		return err
	}
	w.rows = append(w.rows, int64(claim.Position.Seq), o.UserID, q, amount, int64(o.Key), toOptionalMS(claim.PayBy), o.At.UnixMilli())
	if _, err := w.flush(ctx, s); err != nil {
		return err
	}
	if err := insertReferences(ctx, s, appendReference(nil, claim.Position.ShardID, claim.Position.Cursor, o.Reference)); err != nil {
		return err
	}
	before := claim.Position.Cursor
	before.Seq--
	return appendFeed(ctx, s, []feedRow{newGrantRow(claim.Position.ShardID, before, claim.Position.Cursor, o.At.UnixMilli())})
}

// campaign returns the number of the campaign of a product's orders, and makes
// the campaign when there is none yet.
func (ro *RegularOrders) campaign(ctx context.Context, product string) (number uint32, err error) {
	if err = ro.db.Read(ctx, "find a product's orders", func(s *sqldb.Session) error {
		if number, err = regularOf(ctx, s, product); err != nil || number != 0 {
			return err
		}
		// Many orders of a product that does not exist end here and keep no
		// writer busy.
		return mustExist(ctx, s, `SELECT 1 FROM products WHERE id = ?`, aProduct, product)
	}); err != nil || number != 0 {
		return number, err
	}
	err = ro.db.Write(ctx, "begin a product's orders", func(s *sqldb.Session) error {
		// A change of the product's stock waits for this transaction, or this
		// one sees its effect.
		p := dibs.Product{ID: product}
		if err := s.Row(ctx, `SELECT stock, late_payment FROM products WHERE id = ?`+s.ForUpdate, []any{product}, &p.Stock, &p.LatePayment); err != nil {
			return orNotFound(err, aProduct, product)
		}
		if number, err = regularOf(ctx, s, product); err != nil || number != 0 {
			return err
		}
		if err := insertCampaignRow(ctx, s, newRegular(s, &p)); err != nil {
			return err
		}
		if number, err = regularOf(ctx, s, product); err != nil {
			return err
		}
		return insertPosition(ctx, s, dibs.ShardID{Campaign: number}, regularEpoch, p.Stock)
	})
	return number, err
}

// newRegular is the campaign of a product's orders, as it begins. It has an id
// of its own form, which no administrator can give: of a product there is one
// such campaign.
func newRegular(s *sqldb.Session, p *dibs.Product) *dibs.Campaign {
	sum := sha256.Sum256([]byte(p.ID))
	now := s.Now()
	return &dibs.Campaign{
		ID: "product:" + hex.EncodeToString(sum[:16]), Kind: dibs.Sale, Title: p.ID, ProductID: p.ID, State: dibs.RegularState,
		StartsAt: fromMS(0), EndsAt: fromMS(1), Stock: dibs.Stock{Kind: dibs.Units, Total: p.Stock}, LimitPerUser: dibs.MaxStock,
		LatePayment: p.LatePayment, Shards: 1, Version: 1, CreatedAt: now, UpdatedAt: now,
	}
}

// regularOf returns the number of the campaign of a product's orders; 0 for
// none. There is at most one, by its id.
func regularOf(ctx context.Context, s *sqldb.Session, product string) (number uint32, err error) {
	number, err = sqldb.Get[uint32](ctx, s, `SELECT number FROM campaigns WHERE product_id = ? AND state = ?`, product, string(dibs.RegularState))
	if isNoRows(err) {
		return 0, nil
	}
	return number, err
}

// RegularCampaign returns the campaign of a product's orders. ErrNotFound for a
// product that does not exist or was never ordered.
func (ro *RegularOrders) RegularCampaign(ctx context.Context, product string) (*dibs.Campaign, error) {
	return sqldb.Result(ctx, ro.db.Read, "find a product's orders", func(s *sqldb.Session) (*dibs.Campaign, error) {
		number, err := regularOf(ctx, s, product)
		if err == nil && number == 0 {
			err = notFound(aProduct, product)
		}
		if err != nil {
			return nil, err
		}
		c := &dibs.Campaign{}
		return c, readCampaign(ctx, s, number, c)
	})
}

// updateRegular moves the stock and the terms of a product's orders as the
// product's are about to change. Locks go from the shard's row to the
// product's, as in Order.
func updateRegular(ctx context.Context, s *sqldb.Session, p *dibs.Product) error {
	number, err := regularOf(ctx, s, p.ID)
	if err != nil {
		return err
	}
	shard := dibs.ShardID{Campaign: number}
	if number != 0 {
		if _, _, err := lockForStock(ctx, s, shard); err != nil {
			return err
		}
	}
	var stock, left int64
	if err := s.Row(ctx, `SELECT stock, stock_left FROM products WHERE id = ?`+s.ForUpdate, []any{p.ID}, &stock, &left); err != nil {
		return orNotFound(err, aProduct, p.ID)
	}
	p.StockLeft = left + p.Stock - stock
	if number == 0 {
		if number, err = regularOf(ctx, s, p.ID); err == nil && number != 0 {
			// The product was ordered for the first time since the look above.
			err = dibs.ErrConflict
		}
		return err
	}
	if err := s.Do(ctx, `UPDATE campaigns SET late_payment = ? WHERE number = ?`, string(p.LatePayment), number); err != nil {
		return err
	}
	// The ref has the product's version, so that each version moves the stock
	// once.
	r := campaigns.Restock{Shard: shard, Ref: fmt.Sprintf("product/%d", p.Version), Delta: p.Stock - stock, Why: "the product's stock"}
	switch {
	case r.Delta == 0:
		return nil
	case left+r.Delta < 0:
		return onlyLeft(left)
	}
	fresh, err := insertAdjustment(ctx, s, r)
	switch {
	case err != nil:
		return err
	case fresh == 0:
		return dibs.ErrConflict
	}
	return moveStock(ctx, s, r)
}
