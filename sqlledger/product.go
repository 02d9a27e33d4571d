package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
)

const productColumns = `id, name, thumbnail, price, currency, description, comment, stock, version, created_at, updated_at, pay_within_ms, late_payment`

// InsertProduct implements dibs.Catalog.
func (l *Ledger) InsertProduct(ctx context.Context, p *dibs.Product) error {
	return l.write(ctx, "insert product", func(s *session) error {
		price, currency := splitMoney(p.Price)
		_, err := s.exec(ctx, `INSERT INTO products (`+productColumns+`, status, stock_left)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,1,?)`,
			p.ID, p.Name, p.Thumbnail, price, currency, p.Description, p.Comment, p.Stock, p.Version,
			p.CreatedAt.UnixMilli(), p.UpdatedAt.UnixMilli(), p.PayWithin.Milliseconds(), string(p.LatePayment), p.Stock)
		if err != nil && l.d.classify(err) == faultUnique {
			return exists(aProduct, p.ID)
		}
		return err
	})
}

// UpdateProduct implements dibs.Catalog. What was sold of the regular stock
// stays sold: stock_left moves with the stock.
func (l *Ledger) UpdateProduct(ctx context.Context, p *dibs.Product) error {
	err := l.write(ctx, "update product", func(s *session) error {
		if err := l.followProduct(ctx, s, p); err != nil {
			return err
		}
		price, currency := splitMoney(p.Price)
		n, err := s.exec(ctx, `UPDATE products SET name = ?, thumbnail = ?, price = ?, currency = ?,
			description = ?, comment = ?, stock_left = stock_left + ? - stock, stock = ?, pay_within_ms = ?, late_payment = ?,
			version = version + 1, updated_at = ? WHERE id = ? AND version = ?`,
			p.Name, p.Thumbnail, price, currency, p.Description, p.Comment, p.Stock, p.Stock,
			p.PayWithin.Milliseconds(), string(p.LatePayment), p.UpdatedAt.UnixMilli(), p.ID, p.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM products WHERE id = ?`, p.ID, notFound(aProduct, p.ID))
	})
	if err == nil {
		p.Version++
	}
	return err
}

// changedOrGone says why a compare-and-set found no row: ErrConflict, or gone
// when there is no such row at all.
func changedOrGone(ctx context.Context, s *session, statement string, id any, gone error) error {
	var one int
	err := s.row(ctx, statement, []any{id}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return gone
	}
	if err != nil {
		return err
	}
	return dibs.ErrConflict
}

// Product implements dibs.Catalog.
func (l *Ledger) Product(ctx context.Context, id string) (*dibs.Product, error) {
	var p dibs.Product
	err := l.read(ctx, "read product", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+productColumns+`, stock_left FROM products WHERE id = ?`, id)
		if err != nil {
			return err
		}
		return one(rows, notFound(aProduct, id), func() error { return scanProduct(rows, &p) })
	})
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// one scans the first row, or returns the error that says there is none.
func one(rows *sql.Rows, none error, scan func() error) error {
	var err error
	switch {
	case rows.Next():
		err = scan()
	case rows.Err() != nil:
		err = rows.Err()
	default:
		err = none
	}
	return errors.Join(err, rows.Close())
}

// Products implements dibs.Catalog.
func (l *Ledger) Products(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error) {
	var after string
	if _, err := readCursor(page, &after); err != nil {
		return dibs.List[dibs.Product]{}, err
	}
	limit := limitOf(page)
	var found []dibs.Product
	err := l.read(ctx, "list products", func(s *session) error {
		return s.each(ctx, `SELECT `+productColumns+`, stock_left FROM products WHERE id > ? ORDER BY id LIMIT ?`,
			[]any{after, limit + 1}, func(rows *sql.Rows) error {
				found = append(found, dibs.Product{})
				return scanProduct(rows, &found[len(found)-1])
			})
	})
	if err != nil {
		return dibs.List[dibs.Product]{}, err
	}
	return cut(found, limit, func(p *dibs.Product) any { return p.ID })
}

func scanProduct(rows *sql.Rows, p *dibs.Product) error {
	var price, created, updated, payWithin int64
	var currency string
	err := rows.Scan(&p.ID, &p.Name, &p.Thumbnail, &price, &currency, &p.Description, &p.Comment, &p.Stock,
		&p.Version, &created, &updated, &payWithin, &p.LatePayment, &p.StockLeft)
	p.PayWithin = time.Duration(payWithin) * time.Millisecond
	p.Price, p.CreatedAt, p.UpdatedAt = joinMoney(price, currency), fromMS(created), fromMS(updated)
	return err
}
