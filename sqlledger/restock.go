package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

// command is how the outbox keeps an adjustment, or releases.
type command struct {
	Campaign  uint32   `json:"campaign"`
	Shard     uint8    `json:"shard"`
	Epoch     uint16   `json:"epoch"`
	Ref       string   `json:"ref,omitempty"`
	Delta     int64    `json:"delta,omitempty"`
	FirstItem uint32   `json:"first_item,omitempty"`
	Items     []string `json:"items,omitempty"`
	// Releases are claims, by epoch and seq.
	Releases [][2]uint32 `json:"releases,omitempty"`
}

// insert writes the command to the outbox.
func (c *command) insert(ctx context.Context, s *session) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the command: %w", err)
	}
	_, err = s.exec(ctx, `INSERT INTO outbox (campaign, shard, epoch, payload) VALUES (?,?,?,?)`, c.Campaign, c.Shard, c.Epoch, payload)
	return err
}

// read is the command as the contract has it.
func (c *command) read(id int64) dibs.Command {
	shard := dibs.ShardID{Campaign: c.Campaign, Shard: c.Shard}
	found := dibs.Command{ID: id, Shard: shard}
	if len(c.Releases) == 0 {
		found.Adjust = dibs.Adjustment{
			Shard: shard, Epoch: c.Epoch, Ref: c.Ref, Delta: c.Delta, FirstItem: c.FirstItem, Items: c.Items,
		}
		return found
	}
	for _, at := range c.Releases {
		place := dibs.Cursor{Epoch: uint16(at[0]), Seq: at[1]}
		found.Releases = append(found.Releases, dibs.Release{
			Claim: dibs.Position{ShardID: shard, Cursor: place}, Epoch: c.Epoch,
		})
	}
	return found
}

// Restock implements dibs.Settlement. An item that the campaign has already is
// an *Error of InvalidRequest that names its place in the list.
func (l *Ledger) Restock(ctx context.Context, r dibs.Restock) error {
	return l.write(ctx, "restock "+r.Shard.String(), func(s *session) error {
		s.many(int64(len(r.Items)))
		epoch, kind, err := lockForStock(ctx, s, r.Shard)
		if err != nil {
			return err
		}
		fresh, err := l.insertAdjustment(ctx, s, r)
		if err != nil || fresh == 0 {
			return err
		}
		if r.Delta < 0 && epoch == 0 {
			return takeFromDraft(ctx, s, r, kind)
		}
		if err := checkRestock(r, kind); err != nil {
			return err
		}
		if err := l.addStock(ctx, s, r, epoch); err != nil {
			return err
		}
		return l.tellRestock(ctx, s, r)
	})
}

// tellRestock tells that a campaign's stock was changed; changes of drafts are
// nobody's business.
func (l *Ledger) tellRestock(ctx context.Context, s *session, r dibs.Restock) error {
	var state dibs.State
	if err := s.row(ctx, `SELECT state FROM campaigns WHERE number = ?`, []any{r.Shard.Campaign}, &state); err != nil || state == dibs.Draft {
		return err
	}
	news, err := campaignTold(ctx, s, r.Shard.Campaign, l.opts.Now(), events.CampaignStockChanged, r.Delta, r.Why)
	if err != nil {
		return err
	}
	return publish(ctx, s, []told{news})
}

// lockForStock keeps the shard's epoch as it is until the transaction ends: a
// load comes before a change of the stock and its command, or after both.
func lockForStock(ctx context.Context, s *session, shard dibs.ShardID) (epoch uint16, kind dibs.StockKind, err error) {
	err = s.row(ctx, `SELECT p.epoch, c.stock_kind FROM positions p JOIN campaigns c ON c.number = p.campaign
		WHERE p.campaign = ? AND p.shard = ?`+s.d.forUpdate, []any{shard.Campaign, shard.Shard}, &epoch, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(aShard, shard)
	}
	return epoch, kind, err
}

// insertAdjustment records a change of the stock; 0 when its ref is there
// already.
func (l *Ledger) insertAdjustment(ctx context.Context, s *session, r dibs.Restock) (int64, error) {
	return s.insertNew(ctx, `INSERT INTO adjustments (campaign, shard, ref, delta, why, at) VALUES (?,?,?,?,?,?)`,
		r.Shard.Campaign, r.Shard.Shard, r.Ref, r.Delta, r.Why, l.opts.Now().UnixMilli())
}

// checkRestock makes sure that the change suits the kind of the stock.
func checkRestock(r dibs.Restock, kind dibs.StockKind) error {
	if r.Ref == "" {
		return errors.New("a restock needs a ref")
	}
	if r.Delta <= 0 {
		return dibs.Invalid(dibs.Fault{Field: "/delta", Problem: dibs.Text{EN: "must be positive", ZH: "必须大于零"}})
	}
	items := int64(len(r.Items))
	switch {
	case kind == dibs.Units && items > 0:
		return dibs.Invalid(dibs.Fault{Field: "/items", Problem: dibs.Text{
			EN: "must be empty: the campaign's stock is units", ZH: "必须为空：该活动的库存为数量",
		}})
	case kind != dibs.Units && items != r.Delta:
		return dibs.Invalid(dibs.Fault{Field: "/items", Problem: dibs.Textf(
			"must list %d items, as many as delta", "必须列出 %d 项，与 delta 相等", r.Delta)})
	}
	return nil
}

// addStock raises the stock, adds the items and writes the engine's command.
func (l *Ledger) addStock(ctx context.Context, s *session, r dibs.Restock, epoch uint16) error {
	if err := moveStock(ctx, s, r); err != nil {
		return err
	}
	cmd := command{Campaign: r.Shard.Campaign, Shard: r.Shard.Shard, Epoch: epoch, Ref: r.Ref, Delta: r.Delta, Items: r.Items}
	if len(r.Items) > 0 {
		if err := s.row(ctx, `SELECT COALESCE(MAX(n) + 1, 0) FROM items WHERE campaign = ?`,
			[]any{r.Shard.Campaign}, &cmd.FirstItem); err != nil {
			return err
		}
		if err := l.insertItems(ctx, s, newItems{
			campaign: r.Shard.Campaign, first: int(cmd.FirstItem), values: r.Items, field: "/items",
			shardOf: func(int) int { return int(r.Shard.Shard) },
		}); err != nil {
			return err
		}
	}
	return cmd.insert(ctx, s)
}

// moveStock changes the stock of the shard and of its campaign.
func moveStock(ctx context.Context, s *session, r dibs.Restock) error {
	_, err := s.exec(ctx, `UPDATE campaigns SET stock_total = stock_total + ?, stock_left = stock_left + ? WHERE number = ?`,
		r.Delta, r.Delta, r.Shard.Campaign)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `UPDATE positions SET stock = stock + ?, stock_left = stock_left + ? WHERE campaign = ? AND shard = ?`,
		r.Delta, r.Delta, r.Shard.Campaign, r.Shard.Shard)
	if err != nil {
		return err
	}
	return noticeMore(ctx, s, r.Shard.Campaign)
}

// takeFromDraft lowers the stock of a shard that no engine has opened: there
// is nobody to ask what is left. Items go from the end.
func takeFromDraft(ctx context.Context, s *session, r dibs.Restock, kind dibs.StockKind) error {
	var left int64
	if err := s.row(ctx, `SELECT stock_left FROM positions WHERE campaign = ? AND shard = ?`,
		[]any{r.Shard.Campaign, r.Shard.Shard}, &left); err != nil {
		return err
	}
	if left+r.Delta < 0 {
		return dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", left))
	}
	if kind != dibs.Units {
		n, err := s.exec(ctx, `UPDATE items SET withdrawn = 1 WHERE campaign = ? AND n IN (SELECT n FROM (SELECT n FROM items
			WHERE campaign = ? AND shard = ? AND claim_epoch IS NULL AND withdrawn = 0 ORDER BY n DESC LIMIT ?) AS last)`,
			r.Shard.Campaign, r.Shard.Campaign, r.Shard.Shard, -r.Delta)
		if err == nil && n != -r.Delta {
			err = fmt.Errorf("%w: of %d items to withdraw, %d were free", dibs.ErrCorrupt, -r.Delta, n)
		}
		if err != nil {
			return err
		}
	}
	return moveStock(ctx, s, r)
}

// StockChanges implements dibs.Settlement.
func (l *Ledger) StockChanges(ctx context.Context, campaign uint32, refs ...string) (deltas []int64, err error) {
	in := repeat("?", len(refs))
	args := []any{campaign}
	for _, ref := range refs {
		args = append(args, ref)
	}
	err = l.read(ctx, "look up refs", func(s *session) error {
		deltas = nil
		return s.each(ctx, `SELECT delta FROM adjustments WHERE campaign = ? AND ref IN (`+in+`)
			UNION ALL SELECT quantity FROM quarantine WHERE campaign = ? AND ref IN (`+in+`)`, append(args, args...),
			func(rows *sql.Rows) error {
				deltas = append(deltas, 0)
				return rows.Scan(&deltas[len(deltas)-1])
			})
	})
	return deltas, err
}

// Commands implements dibs.Settlement.
func (l *Ledger) Commands(ctx context.Context, after int64, max int) ([]dibs.Command, error) {
	var found []dibs.Command
	err := l.read(ctx, "list commands", func(s *session) error {
		return s.each(ctx, `SELECT id, payload FROM outbox WHERE id > ? ORDER BY id LIMIT ?`, []any{after, max}, func(rows *sql.Rows) error {
			var id int64
			var payload []byte
			if err := rows.Scan(&id, &payload); err != nil {
				return err
			}
			var c command
			if err := json.Unmarshal(payload, &c); err != nil {
				return fmt.Errorf("%w: command %d: %w", dibs.ErrCorrupt, id, err)
			}
			found = append(found, c.read(id))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// DropCommand implements dibs.Settlement. A command that is gone already is
// no error.
func (l *Ledger) DropCommand(ctx context.Context, id int64) error {
	return l.write(ctx, "drop command", func(s *session) error {
		_, err := s.exec(ctx, `DELETE FROM outbox WHERE id = ?`, id)
		return err
	})
}
