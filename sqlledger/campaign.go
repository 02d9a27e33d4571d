package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

const campaignColumns = `number, id, kind, title, product_id, comment, starts_at, ends_at, state, stock_kind,
	stock_total, code_pattern, limit_per_user, price_amount, price_currency, pay_within_ms, late_payment,
	shards, version, created_at, updated_at, valid_for_ms, valid_until, tiers, low_stock, low_since, gate, ` + packetColumns

// campaignTables are what campaignColumns are read from.
const campaignTables = `campaigns LEFT JOIN packets ON packets.campaign = campaigns.number`

// InsertCampaign implements dibs.Catalog. It also makes the rows of the
// shards, each with its part of the stock.
func (l *Ledger) InsertCampaign(ctx context.Context, c *dibs.Campaign, items []string) error {
	if c.HasItems() != (items != nil) || items != nil && int64(len(items)) != c.Stock.Total {
		return fmt.Errorf("sqlledger: insert campaign %s: %d items for a stock of %d %s", c.ID, len(items), c.Stock.Total, c.Stock.Kind)
	}
	var number uint32
	err := l.write(ctx, "insert campaign", func(s *session) error {
		s.many(int64(len(items)))
		if err := l.insertCampaignRow(ctx, s, c); err != nil {
			return err
		}
		if err := s.row(ctx, `SELECT number FROM campaigns WHERE id = ?`, []any{c.ID}, &number); err != nil {
			return err
		}
		for shard := range c.Shards {
			stock := partOf(c.Stock.Total, shard, c.Shards)
			if _, err := s.exec(ctx, `INSERT INTO positions (campaign, shard, epoch, pos_epoch, pos_seq, stock,
				stock_left, pending, confirmed, released, refunded) VALUES (?,?,0,0,0,?,?,0,0,0,0)`,
				number, shard, stock, stock); err != nil {
				return err
			}
		}
		if c.Kind == dibs.RedPacket {
			return l.insertPacket(ctx, s, number, c, items)
		}
		return l.insertItems(ctx, s, newItems{
			campaign: number, values: items, field: "/stock/items",
			shardOf: func(n int) int { return n % c.Shards },
		})
	})
	if err == nil {
		c.Number = number
	}
	return err
}

// partOf is the part of a stock that a shard begins with: the first shards
// have the remainder, as if units were dealt out one by one.
func partOf(total int64, shard, shards int) int64 {
	part := total / int64(shards)
	if int64(shard) < total%int64(shards) {
		part++
	}
	return part
}

func (l *Ledger) insertCampaignRow(ctx context.Context, s *session, c *dibs.Campaign) error {
	price, currency := splitMoney(c.Price)
	tiers, gate, err := rulesText(c)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `INSERT INTO campaigns (id, kind, title, product_id, comment, starts_at, ends_at, state,
		stock_kind, stock_initial, stock_total, stock_left, code_pattern, limit_per_user, price_amount,
		price_currency, pay_within_ms, late_payment, shards, version, created_at, updated_at, valid_for_ms, valid_until, tiers, low_stock, gate)
		VALUES (`+repeat("?", 27)+`)`,
		c.ID, string(c.Kind), c.Title, c.ProductID, c.Comment, c.StartsAt.UnixMilli(), c.EndsAt.UnixMilli(),
		string(c.State), string(c.Stock.Kind), c.Stock.Total, c.Stock.Total, c.Stock.Total, c.Stock.Pattern,
		c.LimitPerUser, price, currency, c.PayWithin.Milliseconds(), string(c.LatePayment), c.Shards,
		c.Version, c.CreatedAt.UnixMilli(), c.UpdatedAt.UnixMilli(), c.ValidFor.Milliseconds(), toOptionalMS(c.ValidUntil), tiers, c.LowStock, gate)
	if err != nil && l.d.classify(err) == faultUnique {
		return exists(aCampaign, c.ID)
	}
	return err
}

// UpdateCampaign implements dibs.Catalog. Stock and shards stay as they are.
func (l *Ledger) UpdateCampaign(ctx context.Context, c *dibs.Campaign) error {
	err := l.write(ctx, "update campaign", func(s *session) error {
		return l.updateCampaign(ctx, s, c, func() error { return nil })
	})
	if err == nil {
		c.Version++
	}
	return err
}

// updateCampaign writes a changed campaign where its version is still the same,
// and what goes with it, before the feed is told.
func (l *Ledger) updateCampaign(ctx context.Context, s *session, c *dibs.Campaign, also func() error) error {
	var before dibs.State
	if err := s.row(ctx, `SELECT state FROM campaigns WHERE id = ?`+s.d.forUpdate, []any{c.ID}, &before); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	price, currency := splitMoney(c.Price)
	tiers, gate, err := rulesText(c)
	if err != nil {
		return err
	}
	n, err := s.exec(ctx, `UPDATE campaigns SET title = ?, product_id = ?, comment = ?, starts_at = ?,
		ends_at = ?, state = ?, limit_per_user = ?, price_amount = ?, price_currency = ?, pay_within_ms = ?,
		late_payment = ?, valid_for_ms = ?, valid_until = ?, tiers = ?, low_stock = ?, gate = ?, version = version + 1, updated_at = ? WHERE id = ? AND version = ?`,
		c.Title, c.ProductID, c.Comment, c.StartsAt.UnixMilli(), c.EndsAt.UnixMilli(), string(c.State),
		c.LimitPerUser, price, currency, c.PayWithin.Milliseconds(), string(c.LatePayment),
		c.ValidFor.Milliseconds(), toOptionalMS(c.ValidUntil), tiers, c.LowStock, gate, c.UpdatedAt.UnixMilli(), c.ID, c.Version)
	if err != nil {
		return err
	}
	if n == 1 {
		if err := also(); err != nil {
			return err
		}
		return l.noteChange(ctx, s, c, before)
	}
	return changedOrGone(ctx, s, `SELECT 1 FROM campaigns WHERE id = ?`, c.ID, notFound(aCampaign, c.ID))
}

// Campaign implements dibs.Catalog.
func (l *Ledger) Campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	return l.campaign(ctx, `state <> '`+string(dibs.RegularState)+`' AND id = ?`, id)
}

// CampaignByNumber implements dibs.Catalog.
func (l *Ledger) CampaignByNumber(ctx context.Context, number uint32) (*dibs.Campaign, error) {
	return l.campaign(ctx, `number = ?`, number)
}

func (l *Ledger) campaign(ctx context.Context, where string, key any) (*dibs.Campaign, error) {
	var c dibs.Campaign
	err := l.read(ctx, "read campaign", func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+campaignColumns+` FROM `+campaignTables+` WHERE `+where, key)
		if err != nil {
			return err
		}
		return one(rows, notFound(aCampaign, key), func() error { return scanCampaign(rows, &c) })
	})
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// Campaigns implements dibs.Catalog.
func (l *Ledger) Campaigns(ctx context.Context, states []dibs.State, page dibs.Page) (dibs.List[dibs.Campaign], error) {
	var none dibs.List[dibs.Campaign]
	before := uint32(dibs.MaxCampaignNumber) + 1
	if _, err := readCursor(page, &before); err != nil {
		return none, err
	}
	// A cursor that somebody made up may lie beyond what the column holds.
	before = min(before, dibs.MaxCampaignNumber+1)
	limit := limitOf(page)
	where, args := `number < ?`, []any{before}
	if len(states) == 0 {
		where, args = where+` AND state <> ?`, append(args, string(dibs.RegularState))
	}
	if len(states) > 0 {
		where += ` AND state IN (` + repeat("?", len(states)) + `)`
		for _, st := range states {
			args = append(args, string(st))
		}
	}
	var found []dibs.Campaign
	err := l.read(ctx, "list campaigns", func(s *session) error {
		return s.each(ctx, `SELECT `+campaignColumns+` FROM `+campaignTables+` WHERE `+where+` ORDER BY number DESC LIMIT ?`,
			append(args, limit+1), func(rows *sql.Rows) error {
				found = append(found, dibs.Campaign{})
				return scanCampaign(rows, &found[len(found)-1])
			})
	})
	if err != nil {
		return none, err
	}
	return cut(found, limit, func(c *dibs.Campaign) any { return c.Number })
}

// LiveCampaigns implements dibs.Catalog. They are ordered by number.
func (l *Ledger) LiveCampaigns(ctx context.Context, after time.Time) ([]*dibs.Campaign, error) {
	var found []*dibs.Campaign
	err := l.read(ctx, "list live campaigns", func(s *session) error {
		return s.each(ctx, `SELECT `+campaignColumns+` FROM `+campaignTables+` WHERE state IN (?,?) AND ends_at > ? ORDER BY number`,
			[]any{string(dibs.Published), string(dibs.PausedState), after.UnixMilli()}, func(rows *sql.Rows) error {
				c := new(dibs.Campaign)
				found = append(found, c)
				return scanCampaign(rows, c)
			})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// LiveVersions implements dibs.Catalog.
func (l *Ledger) LiveVersions(ctx context.Context, after time.Time) ([]dibs.CampaignVersion, error) {
	var found []dibs.CampaignVersion
	err := l.read(ctx, "list live campaigns' versions", func(s *session) error {
		return s.each(ctx, `SELECT number, version FROM campaigns WHERE state IN (?,?) AND ends_at > ? ORDER BY number`,
			[]any{string(dibs.Published), string(dibs.PausedState), after.UnixMilli()}, func(rows *sql.Rows) error {
				var v dibs.CampaignVersion
				err := rows.Scan(&v.Number, &v.Version)
				found = append(found, v)
				return err
			})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// scanCampaign reads campaignColumns, and the columns before them into first.
func scanCampaign(rows *sql.Rows, c *dibs.Campaign, first ...any) error {
	var starts, ends, price, payWithin, created, updated, validFor, validUntil, lowSince int64
	var currency, tiers, gate string
	var packet packetRow
	err := rows.Scan(slices.Concat(first, []any{
		&c.Number, &c.ID, &c.Kind, &c.Title, &c.ProductID, &c.Comment, &starts, &ends, &c.State,
		&c.Stock.Kind, &c.Stock.Total, &c.Stock.Pattern, &c.LimitPerUser, &price, &currency, &payWithin,
		&c.LatePayment, &c.Shards, &c.Version, &created, &updated, &validFor, &validUntil, &tiers, &c.LowStock, &lowSince, &gate,
	}, packet.fields())...)
	packet.fill(c)
	c.StartsAt, c.EndsAt, c.CreatedAt, c.UpdatedAt = fromMS(starts), fromMS(ends), fromMS(created), fromMS(updated)
	c.Price, c.PayWithin = joinMoney(price, currency), time.Duration(payWithin)*time.Millisecond
	c.ValidFor, c.ValidUntil = time.Duration(validFor)*time.Millisecond, fromOptionalMS(validUntil)
	c.LowSince = fromOptionalMS(lowSince)
	if err != nil {
		return err
	}
	return errors.Join(readRule(c, "tiers", tiers, &c.Tiers), readRule(c, "gate", gate, &c.Gate))
}

// rulesText is how a campaign's tiers and its gate are kept, as JSON; empty for
// none.
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

// readRule reads what rulesText wrote.
func readRule(c *dibs.Campaign, name, text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: the %s of campaign %s: %w", dibs.ErrCorrupt, name, c.ID, err)
	}
	return nil
}
