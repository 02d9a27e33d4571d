package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// The columns of a campaign. Its three stocks are stock_initial, with which the
// audit begins to count, stock_total after all adjustments, and stock_left,
// what no claim has. price_amount is in minor units; price_currency is empty
// for a campaign without a price. pay_within_ms and valid_for_ms are 0, and
// valid_until is 0, where there is no such limit. tiers and gate are JSON,
// empty for none. earlier_shards are the numbers of shards before, such as 2,4.
// low_since is when the stock came down to low_stock, 0 while
// it is above.
const (
	campaignColumns = `number, id, kind, title, product_id, comment, starts_at, ends_at, state, stock_kind,
	stock_total, code_pattern, limit_per_user, price_amount, price_currency, pay_within_ms, late_payment,
	shards, version, created_at, updated_at, valid_for_ms, valid_until, tiers, low_stock, low_since, gate, ended_at, limit_per_product, earlier_shards, ` + packetColumns
	// packetColumns are NULL for all kinds but red packets.
	packetColumns = `sender_id, total_amount, total_currency, share_count, split, share_min, share_max`
	// selectCampaigns reads campaigns for scanCampaign.
	selectCampaigns = `SELECT ` + campaignColumns + ` FROM campaigns LEFT JOIN packets ON packets.campaign = campaigns.number`
)

// readCampaign reads a campaign by its number within a transaction.
func readCampaign(ctx context.Context, s *sqldb.Session, number uint32, c *dibs.Campaign) error {
	return sqldb.One(ctx, s, selectCampaigns+` WHERE number = ?`, []any{number}, notFound(aCampaign, number), c, scanCampaign)
}

// insertCampaignRow stores the campaign's own row.
func insertCampaignRow(ctx context.Context, s *sqldb.Session, c *dibs.Campaign) error {
	price, currency := splitMoney(c.Price)
	tiers, gate, err := rulesText(c)
	if err != nil {
		return err
	}
	err = s.Do(ctx, `INSERT INTO campaigns (id, kind, title, product_id, comment, starts_at, ends_at, state,
		stock_kind, stock_initial, stock_total, stock_left, code_pattern, limit_per_user, price_amount,
		price_currency, pay_within_ms, late_payment, shards, version, created_at, updated_at, valid_for_ms, valid_until, tiers, low_stock, gate, limit_per_product)
		VALUES (`+sqldb.Repeat("?", 28)+`)`,
		c.ID, string(c.Kind), c.Title, c.ProductID, c.Comment, c.StartsAt.UnixMilli(), c.EndsAt.UnixMilli(),
		string(c.State), string(c.Stock.Kind), c.Stock.Total, c.Stock.Total, c.Stock.Total, c.Stock.Pattern,
		c.LimitPerUser, price, currency, c.PayWithin.Milliseconds(), string(c.LatePayment), c.Shards,
		c.Version, c.CreatedAt.UnixMilli(), c.UpdatedAt.UnixMilli(), c.ValidFor.Milliseconds(), toOptionalMS(c.ValidUntil), tiers, c.LowStock, gate, c.LimitPerProduct)
	return orExists(s, err, aCampaign, c.ID)
}

// updateCampaignRow changes the row where its version is still the campaign's,
// and returns how many rows those were.
func updateCampaignRow(ctx context.Context, s *sqldb.Session, c *dibs.Campaign) (int64, error) {
	price, currency := splitMoney(c.Price)
	tiers, gate, err := rulesText(c)
	if err != nil {
		return 0, err
	}
	return s.Exec(ctx, `UPDATE campaigns SET title = ?, product_id = ?, comment = ?, starts_at = ?,
		ends_at = ?, state = ?, limit_per_user = ?, price_amount = ?, price_currency = ?, pay_within_ms = ?,
		late_payment = ?, valid_for_ms = ?, valid_until = ?, tiers = ?, low_stock = ?, gate = ?, ended_at = ?, limit_per_product = ?,
		shards = ?, earlier_shards = ?, version = version + 1, updated_at = ? WHERE id = ? AND version = ?`,
		c.Title, c.ProductID, c.Comment, c.StartsAt.UnixMilli(), c.EndsAt.UnixMilli(), string(c.State),
		c.LimitPerUser, price, currency, c.PayWithin.Milliseconds(), string(c.LatePayment),
		c.ValidFor.Milliseconds(), toOptionalMS(c.ValidUntil), tiers, c.LowStock, gate, toOptionalMS(c.EndedAt), c.LimitPerProduct,
		c.Shards, numbersText(c.EarlierShards), c.UpdatedAt.UnixMilli(), c.ID, c.Version)
}

// scanCampaign reads campaignColumns.
func scanCampaign(rows *sql.Rows, c *dibs.Campaign) error { return scanCampaignAfter(rows, c) }

// scanCampaignAfter reads campaignColumns, and the columns before them into
// first. It fills in the red packet of campaigns that are one.
func scanCampaignAfter(rows *sql.Rows, c *dibs.Campaign, first ...any) error {
	var price, payWithin, validFor int64
	var currency, tiers, gate, earlier string
	var p packetRow
	err := rows.Scan(append(first,
		&c.Number, &c.ID, &c.Kind, &c.Title, &c.ProductID, &c.Comment, ms(&c.StartsAt), ms(&c.EndsAt), &c.State,
		&c.Stock.Kind, &c.Stock.Total, &c.Stock.Pattern, &c.LimitPerUser, &price, &currency, &payWithin,
		&c.LatePayment, &c.Shards, &c.Version, ms(&c.CreatedAt), ms(&c.UpdatedAt), &validFor, optionalMS(&c.ValidUntil), &tiers,
		&c.LowStock, optionalMS(&c.LowSince), &gate, optionalMS(&c.EndedAt), &c.LimitPerProduct, &earlier,
		&p.sender, &p.total, &p.currency, &p.count, &p.split, &p.least, &p.most)...)
	// A failed scan leaves zero values, which the rest turns into zero values
	// too.
	p.fill(c)
	c.Price = joinMoney(price, currency)
	c.PayWithin, c.ValidFor = time.Duration(payWithin)*time.Millisecond, time.Duration(validFor)*time.Millisecond
	if err != nil {
		return err
	}
	if earlier != "" {
		// Written as an array is, but for its ends.
		earlier = "[" + earlier + "]"
	}
	return errors.Join(readRule(c, "tiers", tiers, &c.Tiers), readRule(c, "gate", gate, &c.Gate),
		readRule(c, "earlier shards", earlier, &c.EarlierShards))
}

// numbersText writes numbers such as 2,4.
func numbersText(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// packetRow has the packetColumns of a row.
type packetRow struct {
	sender, currency, split   sql.NullString
	total, count, least, most sql.NullInt64
}

// fill adds the red packet to its campaign.
func (p *packetRow) fill(c *dibs.Campaign) {
	if !p.total.Valid {
		return
	}
	c.SenderID = p.sender.String
	c.Packet = &dibs.RedPacketSpec{
		Total: dibs.Money{Amount: p.total.Int64, Currency: p.currency.String}, Count: p.count.Int64,
		Split: dibs.Split(p.split.String), Min: p.least.Int64, Max: p.most.Int64,
	}
}

// rulesText returns how a campaign's tiers and its gate are stored: as JSON,
// empty for none.
func rulesText(c *dibs.Campaign) (tiers, gate string, err error) {
	if len(c.Tiers) > 0 {
		text, err := json.Marshal(c.Tiers)
		if err != nil {
			return "", "", err
		}
		tiers = string(text)
	}
	if c.Gate == nil {
		return tiers, "", nil
	}
	text, err := json.Marshal(c.Gate)
	return tiers, string(text), err
}

// readRule reads what rulesText wrote. into stays as it is for an empty text.
func readRule(c *dibs.Campaign, name, text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: the %s of campaign %s: %w", dibs.ErrCorrupt, name, c.ID, err)
	}
	return nil
}

// Campaigns of one product that have a limit per product share it. The engine counts
// over all of them that were ever published, so each names the same shards.

// maxSharing is how many campaigns of a product may share a limit: the engine looks at
// what a user has of each.
const maxSharing = 1000

// areSharing is the condition of the campaigns that share a product's limit.
const areSharing = ` WHERE product_id = ? AND limit_per_product > 0 AND state <> '` + string(dibs.Draft) + `'`

// mayShareLimit refuses to publish a campaign beside those that share its limit, when
// it has other shards than they, or another limit than one that goes on. The product's
// row is locked, so that of two campaigns that are published at once the second one
// sees the first.
func mayShareLimit(ctx context.Context, s *sqldb.Session, c *dibs.Campaign) error {
	product := c.LimitedProduct()
	if product == "" {
		return nil
	}
	if err := mustExist(ctx, s, `SELECT 1 FROM products WHERE id = ?`+s.ForUpdate, aProduct, product); err != nil {
		return err
	}
	var faults []dibs.Fault
	n := 0
	err := s.Each(ctx, `SELECT id, shards, limit_per_product, state, ends_at FROM campaigns`+areSharing+` AND id <> ? ORDER BY number`,
		[]any{product, c.ID}, func(rows *sql.Rows) error {
			var other dibs.Campaign
			if err := rows.Scan(&other.ID, &other.Shards, &other.LimitPerProduct, &other.State, ms(&other.EndsAt)); err != nil {
				return err
			}
			n++
			if f, found := sharingFault(c, &other); found && len(faults) == 0 {
				faults = append(faults, f)
			}
			return nil
		})
	if n >= maxSharing {
		faults = append(faults, dibs.Fault{Field: "/limit_per_product", Problem: dibs.Textf(
			"%d campaigns of product %s share it, and no more can", "商品 %[2]s 已有 %[1]d 个活动共享该限购，不能再增加", n, product)})
	}
	if err != nil || len(faults) == 0 {
		return err
	}
	return dibs.Invalid(faults...)
}

// sharingFault is why a campaign cannot share its limit with another one.
func sharingFault(c, other *dibs.Campaign) (f dibs.Fault, found bool) {
	switch {
	case c.Shards != other.Shards:
		return dibs.Fault{Field: "/shards", Problem: dibs.Textf(
			"must be %d, as campaign %s has: campaigns of product %s with limit_per_product are divided alike",
			"必须与活动 %[2]s 相同，即 %[1]d：商品 %[3]s 中设有 limit_per_product 的活动分片数必须一致", other.Shards, other.ID, c.ProductID)}, true
	case c.LimitPerProduct != other.LimitPerProduct && other.Live() && c.UpdatedAt.Before(other.EndsAt):
		return dibs.Fault{Field: "/limit_per_product", Problem: dibs.Textf(
			"must be %d, as campaign %s has, which goes on and shares the limit of product %s",
			"必须与正在进行的活动 %[2]s 相同，即 %[1]d：它们共享商品 %[3]s 的限购", other.LimitPerProduct, other.ID, c.ProductID)}, true
	}
	return f, false
}

// loadSharing reads the campaigns that share the limit of a shard's campaign.
func loadSharing(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, load *dibs.ShardLoad) (err error) {
	if c.LimitedProduct() != "" {
		load.Sharing, err = sqldb.List(ctx, s, `SELECT number FROM campaigns`+areSharing+` AND number <> ? ORDER BY number`,
			[]any{c.ProductID, c.Number}, sqldb.Scan1[uint32])
	}
	return err
}
