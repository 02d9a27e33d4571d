package sqlledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/dibs-dev/dibs"
)

// regularEpoch is the epoch of all regular orders: no engine ever raises it.
const regularEpoch = 1

// Order implements dibs.Regulars. The row of the campaign's only shard comes
// first, as everywhere: orders of one product are decided one after the other.
func (l *Ledger) Order(ctx context.Context, o dibs.Order) (dibs.OrderResult, error) {
	var res dibs.OrderResult
	number, err := l.regularCampaign(ctx, o.ProductID)
	if err != nil {
		return res, err
	}
	err = l.write(ctx, "order of product "+o.ProductID, func(s *session) error {
		res = dibs.OrderResult{Campaign: &dibs.Campaign{}}
		var seq, left int64
		if err := s.row(ctx, `SELECT pos_seq, stock_left FROM positions WHERE campaign = ? AND shard = 0`+s.d.forUpdate,
			[]any{number}, &seq, &left); err != nil {
			return err
		}
		if err := readCampaign(ctx, s, number, res.Campaign); err != nil {
			return err
		}
		if done, err := repeated(ctx, s, number, &o, &res); done || err != nil {
			return err
		}
		if left < o.Quantity {
			res.Outcome, res.Remaining = dibs.SoldOut, left
			return nil
		}
		if seq == math.MaxUint32 {
			return dibs.Unavail(dibs.EffectNone, fmt.Errorf("product %s has no room for more orders", o.ProductID))
		}
		claim, err := newOrder(ctx, s, &o)
		if err != nil {
			return err
		}
		claim.Position = dibs.Position{ShardID: dibs.ShardID{Campaign: number}, Cursor: dibs.Cursor{Epoch: regularEpoch, Seq: uint32(seq + 1)}}
		res.Outcome, res.Claim = dibs.Granted, claim
		return l.writeOrder(ctx, s, &o, claim)
	})
	return res, err
}

// repeated finds the first result of an order that is repeated.
func repeated(ctx context.Context, s *session, number uint32, o *dibs.Order, res *dibs.OrderResult) (bool, error) {
	if o.Key == 0 {
		return false, nil
	}
	var found []dibs.Claim
	if err := s.each(ctx, `SELECT `+claimColumns+` FROM claims WHERE user_id = ? AND campaign = ? AND request_key = ? ORDER BY created_at LIMIT 1`,
		[]any{o.UserID, number, int64(o.Key)}, func(rows *sql.Rows) error {
			found = append(found, dibs.Claim{})
			return scanClaim(rows, &found[0])
		}); err != nil || len(found) == 0 {
		return false, err
	}
	if res.Outcome = dibs.Granted; found[0].Quantity != o.Quantity {
		res.Outcome = dibs.KeyReused
		return true, nil
	}
	res.Claim, res.Replayed = &found[0], true
	return true, eventsOf(ctx, s, pointers(found))
}

// newOrder is the claim of an order at the product's price and terms.
func newOrder(ctx context.Context, s *session, o *dibs.Order) (*dibs.Claim, error) {
	var price, payWithin int64
	var currency string
	if err := s.row(ctx, `SELECT price, currency, pay_within_ms FROM products WHERE id = ?`, []any{o.ProductID}, &price, &currency, &payWithin); err != nil {
		return nil, err
	}
	claim := &dibs.Claim{
		UserID: o.UserID, Quantity: o.Quantity, Status: dibs.Confirmed, OrderType: dibs.RegularOrder, Amount: o.Amount, CreatedAt: o.At,
	}
	if !o.Late {
		if price > 0 && o.Quantity > (dibs.MaxMinor-1)/price {
			return nil, dibs.Invalid(dibs.Fault{Field: "/quantity", Problem: dibs.Textf(
				"times the price must stay below %d", "与价格的乘积必须小于 %d", dibs.MaxMinor)})
		}
		claim.Amount = joinMoney(price*o.Quantity, currency)
	}
	if payWithin > 0 {
		claim.Status, claim.PayBy = dibs.Pending, fromMS(o.At.UnixMilli()+payWithin)
	}
	return claim, nil
}

// writeOrder takes the stock, by compare-and-set, and writes the claim.
func (l *Ledger) writeOrder(ctx context.Context, s *session, o *dibs.Order, claim *dibs.Claim) error {
	number, q := claim.Position.Campaign, o.Quantity
	pending, confirmed := int64(0), q
	if claim.Status == dibs.Pending {
		pending, confirmed = q, 0
	}
	for _, take := range []struct {
		statement string
		args      []any
	}{
		{`UPDATE positions SET pos_seq = pos_seq + 1, stock_left = stock_left - ?, pending = pending + ?, confirmed = confirmed + ?
			WHERE campaign = ? AND shard = 0 AND pos_seq = ? AND stock_left >= ?`, []any{q, pending, confirmed, number, claim.Position.Seq - 1, q}},
		{`UPDATE campaigns SET stock_left = stock_left - ? WHERE number = ? AND stock_left >= ?`, []any{q, number, q}},
		{`UPDATE products SET stock_left = stock_left - ? WHERE id = ? AND stock_left >= ?`, []any{q, o.ProductID, q}},
	} {
		n, err := s.exec(ctx, take.statement, take.args...)
		if err == nil && n != 1 {
			err = fmt.Errorf("%w: the stock of product %s is not what its campaign has", dibs.ErrCorrupt, o.ProductID)
		}
		if err != nil {
			return err
		}
	}
	amount, currency := splitMoney(claim.Amount)
	w := rowWriter{to: &l.d.claims, width: 7, head: []any{
		int64(number), int64(0), nil, int64(claim.Status), int64(dibs.RegularOrder), currency,
	}}
	if err := w.begin(ctx, s, regularEpoch); err != nil {
		return err
	}
	w.rows = append(w.rows, int64(claim.Position.Seq), o.UserID, q, amount, int64(o.Key), toOptionalMS(claim.PayBy), o.At.UnixMilli())
	if _, err := w.flush(ctx, s); err != nil {
		return err
	}
	place := claim.Position
	return publish(ctx, s, []told{{feedGrants, o.At.UnixMilli(), grantsTold{
		Campaign: place.Campaign, Shard: place.Shard,
		From: [2]uint32{regularEpoch, place.Seq - 1}, To: [2]uint32{regularEpoch, place.Seq},
	}}})
}

// regularCampaign returns the campaign of a product's regular orders, and makes
// it when there is none yet.
func (l *Ledger) regularCampaign(ctx context.Context, product string) (number uint32, err error) {
	if err = l.read(ctx, "find a product's orders", func(s *session) error {
		if number, err = regularOf(ctx, s, product); err != nil || number != 0 {
			return err
		}
		// A storm on a product that is not there does not reach those who write.
		var one int
		if err := s.row(ctx, `SELECT 1 FROM products WHERE id = ?`, []any{product}, &one); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return notFound(aProduct, product)
	}); err != nil || number != 0 {
		return number, err
	}
	err = l.write(ctx, "begin a product's orders", func(s *session) error {
		// Who changes the product's stock waits, or sees the campaign.
		p := dibs.Product{ID: product}
		var late string
		err := s.row(ctx, `SELECT stock, stock_left, late_payment FROM products WHERE id = ?`+s.d.forUpdate, []any{product}, &p.Stock, &p.StockLeft, &late)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(aProduct, product)
		}
		if err != nil {
			return err
		}
		if number, err = regularOf(ctx, s, product); err != nil || number != 0 {
			return err
		}
		c := l.newRegular(&p)
		c.LatePayment = dibs.LatePayment(late)
		if err := l.insertCampaignRow(ctx, s, c); err != nil {
			return err
		}
		if number, err = regularOf(ctx, s, product); err != nil {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO positions (campaign, shard, epoch, pos_epoch, pos_seq, stock,
			stock_left, pending, confirmed, released, refunded) VALUES (?,0,?,?,0,?,?,0,0,0,0)`,
			number, regularEpoch, regularEpoch, c.Stock.Total, c.Stock.Total)
		return err
	})
	return number, err
}

// newRegular is the campaign behind a product's orders, as it begins. Its id is
// one that nobody can give: of a product, there is one.
func (l *Ledger) newRegular(p *dibs.Product) *dibs.Campaign {
	sum := sha256.Sum256([]byte(p.ID))
	now := l.opts.Now()
	return &dibs.Campaign{
		ID: "product:" + hex.EncodeToString(sum[:16]), Kind: dibs.Sale, Title: p.ID, ProductID: p.ID, State: dibs.RegularState,
		StartsAt: fromMS(0), EndsAt: fromMS(1), Stock: dibs.Stock{Kind: dibs.Units, Total: p.Stock}, LimitPerUser: dibs.MaxStock,
		Shards: 1, Version: 1, CreatedAt: now, UpdatedAt: now,
	}
}

// regularOf returns the number of a product's campaign of regular orders; 0 for
// none.
func regularOf(ctx context.Context, s *session, product string) (number uint32, err error) {
	err = s.row(ctx, `SELECT number FROM campaigns WHERE product_id = ? AND state = ?`, []any{product, string(dibs.RegularState)}, &number)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return number, err
}

// RegularCampaign implements dibs.Regulars.
func (l *Ledger) RegularCampaign(ctx context.Context, product string) (*dibs.Campaign, error) {
	c := &dibs.Campaign{}
	err := l.read(ctx, "find a product's orders", func(s *session) error {
		number, err := regularOf(ctx, s, product)
		if err == nil && number == 0 {
			err = notFound(aProduct, product)
		}
		if err != nil {
			return err
		}
		return readCampaign(ctx, s, number, c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readCampaign reads a campaign by its number within a transaction.
func readCampaign(ctx context.Context, s *session, number uint32, c *dibs.Campaign) error {
	return s.each(ctx, `SELECT `+campaignColumns+` FROM `+campaignTables+` WHERE number = ?`, []any{number},
		func(rows *sql.Rows) error { return scanCampaign(rows, c) })
}

// followProduct moves the stock and the terms of a product's regular orders as
// the product's are about to change. Locks go from the shard's row to the
// product's, as in Order.
func (l *Ledger) followProduct(ctx context.Context, s *session, p *dibs.Product) error {
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
	err = s.row(ctx, `SELECT stock, stock_left FROM products WHERE id = ?`+s.d.forUpdate, []any{p.ID}, &stock, &left)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(aProduct, p.ID)
	}
	if err != nil {
		return err
	}
	p.StockLeft = left + p.Stock - stock
	if number == 0 {
		if number, err = regularOf(ctx, s, p.ID); err == nil && number != 0 {
			// It has just been ordered for the first time.
			err = dibs.ErrConflict
		}
		return err
	}
	if _, err := s.exec(ctx, `UPDATE campaigns SET late_payment = ? WHERE number = ?`, string(p.LatePayment), number); err != nil {
		return err
	}
	r := dibs.Restock{Shard: shard, Ref: fmt.Sprintf("product/%d", p.Version), Delta: p.Stock - stock, Why: "the product's stock"}
	switch {
	case r.Delta == 0:
		return nil
	case left+r.Delta < 0:
		return dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", left))
	}
	if fresh, err := l.insertAdjustment(ctx, s, r); err != nil || fresh == 0 {
		if err == nil {
			err = dibs.ErrConflict
		}
		return err
	}
	return moveStock(ctx, s, r)
}

// compareProduct compares the product's own counts with its orders.
func (au *auditor) compareProduct(ctx context.Context) error {
	if !au.c.Regular() {
		return nil
	}
	var stock, left int64
	if err := au.s.row(ctx, `SELECT stock, stock_left FROM products WHERE id = ?`, []any{au.c.ProductID}, &stock, &left); err != nil {
		return err
	}
	au.compare("product stock", stock, au.a.Stock)
	au.compare("product stock_left", left, au.a.Stock-au.a.Held-au.a.Withheld)
	return nil
}
