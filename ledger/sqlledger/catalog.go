package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
)

// Catalog keeps products and campaigns.
//
// A row is changed by its id and version, so that of two changes that were made
// from the same state one is refused (ErrConflict). The stocks in the rows are
// moved by Stock, Settlement, Claims and RegularOrders; only a product's own
// stock is written here.
type Catalog struct{ db *sqldb.DB }

// productColumns are the columns of a product but for stock_left, what is left
// of stock, its own. price is in minor units, and currency is empty for none.
// pay_within_ms is 0 for orders that need no payment.
const productColumns = `id, name, thumbnail, price, currency, description, comment, stock, version, created_at, updated_at, pay_within_ms, late_payment, status`

// The statuses of products as their column has them: every product of a schema before
// they could be changed has 1.
const (
	productOffSale = 0
	productOnSale  = 1
)

func productStatus(p *dibs.Product) int64 {
	if p.Status == dibs.OffSale {
		return productOffSale
	}
	return productOnSale
}

// InsertProduct stores a new product. ErrAlreadyExists when the id is taken.
func (cat *Catalog) InsertProduct(ctx context.Context, p *dibs.Product) error {
	return cat.db.Write(ctx, "insert product", func(s *sqldb.Session) error {
		price, currency := splitMoney(p.Price)
		err := s.Do(ctx, `INSERT INTO products (`+productColumns+`, stock_left) VALUES (`+sqldb.Repeat("?", 15)+`)`,
			p.ID, p.Name, p.Thumbnail, price, currency, p.Description, p.Comment, p.Stock, p.Version, p.CreatedAt.UnixMilli(),
			p.UpdatedAt.UnixMilli(), p.PayWithin.Milliseconds(), string(p.LatePayment), productStatus(p), p.Stock)
		return orExists(s, err, aProduct, p.ID)
	})
}

// UpdateProduct stores p where the stored version is p.Version, and raises the
// version in p. Units of the regular stock that were sold stay sold: stock_left moves
// with the stock, in p too, and a stock below what was sold is an *Error of
// InvalidState. ErrConflict when the version or the stock has moved,
// ErrNotFound.
func (cat *Catalog) UpdateProduct(ctx context.Context, p *dibs.Product) error {
	err := cat.db.Write(ctx, "update product", func(s *sqldb.Session) error {
		if err := updateRegular(ctx, s, p); err != nil {
			return err
		}
		price, currency := splitMoney(p.Price)
		n, err := s.Exec(ctx, `UPDATE products SET name = ?, thumbnail = ?, price = ?, currency = ?,
			description = ?, comment = ?, stock_left = stock_left + ? - stock, stock = ?, pay_within_ms = ?, late_payment = ?, status = ?,
			version = version + 1, updated_at = ? WHERE id = ? AND version = ?`,
			p.Name, p.Thumbnail, price, currency, p.Description, p.Comment, p.Stock, p.Stock,
			p.PayWithin.Milliseconds(), string(p.LatePayment), productStatus(p), p.UpdatedAt.UnixMilli(), p.ID, p.Version)
		if err != nil || n == 1 {
			return err
		}
		return changedOrGone(ctx, s, `SELECT 1 FROM products WHERE id = ?`, aProduct, p.ID)
	})
	if err == nil {
		p.Version++
	}
	return err
}

// Product returns a product. ErrNotFound.
func (cat *Catalog) Product(ctx context.Context, id string) (*dibs.Product, error) {
	return sqldb.ReadOne(ctx, cat.db, "read product", `SELECT `+productColumns+`, stock_left FROM products WHERE id = ?`, []any{id},
		notFound(aProduct, id), scanProduct)
}

// Products lists products by id.
func (cat *Catalog) Products(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error) {
	return readPage(ctx, cat.db, "list products", page, "", func(after string) query {
		return query{`SELECT ` + productColumns + `, stock_left FROM products WHERE id > ? ORDER BY id LIMIT ?`, []any{after}}
	}, scanProduct, func(p *dibs.Product) string { return p.ID })
}

// scanProduct reads productColumns and stock_left.
func scanProduct(rows *sql.Rows, p *dibs.Product) error {
	var price, payWithin, status int64
	var currency string
	err := rows.Scan(&p.ID, &p.Name, &p.Thumbnail, &price, &currency, &p.Description, &p.Comment, &p.Stock,
		&p.Version, ms(&p.CreatedAt), ms(&p.UpdatedAt), &payWithin, &p.LatePayment, &status, &p.StockLeft)
	if p.Status = dibs.OnSale; status == productOffSale {
		p.Status = dibs.OffSale
	}
	p.Price, p.PayWithin = joinMoney(price, currency), time.Duration(payWithin)*time.Millisecond
	return err
}

// InsertCampaign stores a new campaign and its items (nil for a stock of
// units), makes the rows of its shards, each with its part of the stock, and
// sets c.Number. ErrAlreadyExists when the id is taken; an *Error of
// InvalidRequest that names the items which are listed twice.
func (cat *Catalog) InsertCampaign(ctx context.Context, c *dibs.Campaign, items []string) error {
	if c.HasItems() != (items != nil) || items != nil && int64(len(items)) != c.Stock.Total {
		return fmt.Errorf("sqlledger: insert campaign %s: %d items for a stock of %d %s", c.ID, len(items), c.Stock.Total, c.Stock.Kind)
	}
	var number uint32
	err := cat.db.Write(ctx, "insert campaign", func(s *sqldb.Session) (err error) {
		s.ManyRows(int64(len(items)))
		if err := insertCampaignRow(ctx, s, c); err != nil {
			return err
		}
		// The database gives the number. Reading it back by the id works on
		// every database, and is no other campaign's: the id is unique.
		if number, err = sqldb.Get[uint32](ctx, s, `SELECT number FROM campaigns WHERE id = ?`, c.ID); err != nil {
			return err
		}
		for shard := range c.Shards {
			if err := insertPosition(ctx, s, dibs.ShardID{Campaign: number, Shard: uint8(shard)}, 0, partOf(c.Stock.Total, shard, c.Shards)); err != nil {
				return err
			}
		}
		if c.Kind == dibs.RedPacket {
			return insertPacket(ctx, s, number, c, items)
		}
		return insertItems(ctx, cat.db, s, newItems{
			campaign: number, values: items, field: "/stock/items",
			shardOf: func(i int) int { return i % c.Shards },
		})
	})
	if err == nil {
		c.Number = number
	}
	return err
}

// insertPosition makes the row of a shard, in an epoch, before its first entry.
// The position is before the first entry of the epoch: seq 0 names none.
func insertPosition(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, epoch uint16, stock int64) error {
	return s.Do(ctx, `INSERT INTO positions (campaign, shard, epoch, pos_epoch, pos_seq, stock,
		stock_left, pending, confirmed, released, refunded) VALUES (?,?,?,?,0,?,?,0,0,0,0)`,
		shard.Campaign, shard.Shard, epoch, epoch, stock, stock)
}

// partOf is the part of a stock that a shard begins with: the first shards have
// the remainder, as if units were dealt out one by one.
func partOf(total int64, shard, shards int) int64 {
	part := total / int64(shards)
	if int64(shard) < total%int64(shards) {
		part++
	}
	return part
}

// UpdateCampaign stores c where the stored version is c.Version, and raises the
// version in c. The stock stays as it is. Shards that c has and the ledger has not
// are made, without stock. ErrConflict, ErrNotFound; an *Error of InvalidRequest when c
// is published and cannot share its limit per product with the campaigns that have it.
func (cat *Catalog) UpdateCampaign(ctx context.Context, c *dibs.Campaign) error {
	return updateCampaign(ctx, cat.db, "update campaign", c, func(*sqldb.Session) error { return nil })
}

// updateCampaign writes a changed campaign where its version is still the same.
// In the same transaction it does also what goes with the change, and then
// tells the feed. op names the call in errors and traces. It raises c.Version
// when it has worked.
func updateCampaign(ctx context.Context, db *sqldb.DB, op string, c *dibs.Campaign, also func(*sqldb.Session) error) error {
	err := db.Write(ctx, op, func(s *sqldb.Session) error {
		// The lock keeps the state until the UPDATE: the feed reports from
		// which state the change came. A campaign that does not exist has none,
		// and the UPDATE finds that out.
		before, err := sqldb.Get[dibs.State](ctx, s, `SELECT state FROM campaigns WHERE id = ?`+s.ForUpdate, c.ID)
		if err != nil && !isNoRows(err) {
			return err
		}
		if before == dibs.Draft && c.State == dibs.Published {
			if err := mayShareLimit(ctx, s, c); err != nil {
				return err
			}
		}
		n, err := updateCampaignRow(ctx, s, c)
		if err != nil {
			return err
		}
		if n != 1 {
			return changedOrGone(ctx, s, `SELECT 1 FROM campaigns WHERE id = ?`, aCampaign, c.ID)
		}
		if err := addShards(ctx, s, c); err != nil {
			return err
		}
		if err := also(s); err != nil {
			return err
		}
		return appendCampaignChange(ctx, s, c, before)
	})
	if err == nil {
		c.Version++
	}
	return err
}

// addShards makes the rows of shards that a campaign has been given since it was made.
// They have no stock: it comes from the others.
func addShards(ctx context.Context, s *sqldb.Session, c *dibs.Campaign) error {
	if len(c.EarlierShards) == 0 {
		return nil
	}
	var number uint32
	var have int
	if err := s.Row(ctx, `SELECT number, (SELECT COUNT(*) FROM positions WHERE campaign = number) FROM campaigns WHERE id = ?`, []any{c.ID}, &number, &have); err != nil {
		return err
	}
	for shard := have; shard < c.Shards; shard++ {
		id := dibs.ShardID{Campaign: number, Shard: uint8(shard)}
		if err := insertPosition(ctx, s, id, 0, 0); err != nil {
			return err
		}
		if c.Kind == dibs.RedPacket {
			if err := insertPacketPosition(ctx, s, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Campaign returns a campaign by its id. The campaigns of regular orders are
// not found by it. ErrNotFound.
func (cat *Catalog) Campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	return cat.campaign(ctx, `state <> '`+string(dibs.RegularState)+`' AND id = ?`, id)
}

// CampaignByNumber returns a campaign of any kind by its number. ErrNotFound.
func (cat *Catalog) CampaignByNumber(ctx context.Context, number uint32) (*dibs.Campaign, error) {
	return cat.campaign(ctx, `number = ?`, number)
}

// campaign reads the campaign of a condition with one argument, which names it
// in the error.
func (cat *Catalog) campaign(ctx context.Context, where string, key any) (*dibs.Campaign, error) {
	return sqldb.ReadOne(ctx, cat.db, "read campaign", selectCampaigns+` WHERE `+where, []any{key}, notFound(aCampaign, key), scanCampaign)
}

// Campaigns lists campaigns, the newest first; of a product when it is not empty. An
// empty list of states means all but those of regular orders.
func (cat *Catalog) Campaigns(ctx context.Context, states []dibs.State, product string, page dibs.Page) (dibs.List[dibs.Campaign], error) {
	q := query{selectCampaigns + ` WHERE state <> ?`, []any{string(dibs.RegularState)}}
	if len(states) > 0 {
		q = query{statement: selectCampaigns + ` WHERE state IN (` + sqldb.Repeat("?", len(states)) + `)`}
		for _, st := range states {
			q.args = append(q.args, string(st))
		}
	}
	if product != "" {
		q.and(`product_id = ?`, product)
	}
	// Numbers rise with time, so that the newest campaign has the highest one. A forged
	// cursor may lie beyond what the column holds.
	const beyond = uint32(dibs.MaxCampaignNumber) + 1
	return readPage(ctx, cat.db, "list campaigns", page, beyond, func(before uint32) query {
		q.and(`number < ?`, min(before, beyond))
		return q.then(` ORDER BY number DESC LIMIT ?`)
	}, scanCampaign, func(c *dibs.Campaign) uint32 { return c.Number })
}

// areLive is the condition of campaigns that are published or paused and end
// after a time.
const areLive = ` WHERE state IN (?,?) AND ends_at > ? ORDER BY number`

// liveArguments are the arguments of areLive.
func liveArguments(after time.Time) []any {
	return []any{string(dibs.Published), string(dibs.PausedState), after.UnixMilli()}
}

// LiveCampaigns returns the campaigns that are published or paused and end
// after a time, by number.
func (cat *Catalog) LiveCampaigns(ctx context.Context, after time.Time) ([]*dibs.Campaign, error) {
	return sqldb.ReadList(ctx, cat.db, "list live campaigns", selectCampaigns+areLive, liveArguments(after),
		func(rows *sql.Rows, c **dibs.Campaign) error {
			*c = new(dibs.Campaign)
			return scanCampaign(rows, *c)
		})
}

// LiveVersions is LiveCampaigns with numbers and versions alone. Every node
// asks each second, and reads the campaigns whose version has changed.
func (cat *Catalog) LiveVersions(ctx context.Context, after time.Time) ([]live.CampaignVersion, error) {
	return sqldb.ReadList(ctx, cat.db, "list live campaigns' versions", `SELECT number, version FROM campaigns`+areLive, liveArguments(after),
		func(rows *sql.Rows, v *live.CampaignVersion) error { return rows.Scan(&v.Number, &v.Version) })
}

// CampaignsOf returns the numbers of a product's campaigns, the newest first,
// at most orders.MaxCampaignsListed. The statement takes the campaign of the
// regular orders first, so that newer campaigns do not push it beyond the
// limit.
func (cat *Catalog) CampaignsOf(ctx context.Context, product string) ([]uint32, error) {
	numbers, err := sqldb.ReadList(ctx, cat.db, "list a product's campaigns", `SELECT number FROM campaigns WHERE product_id = ?
		ORDER BY CASE WHEN state = ? THEN 0 ELSE 1 END, number DESC LIMIT ?`,
		[]any{product, string(dibs.RegularState), orders.MaxCampaignsListed}, sqldb.Scan1[uint32])
	slices.SortFunc(numbers, func(a, b uint32) int { return cmp.Compare(b, a) })
	return append([]uint32{}, numbers...), err
}
