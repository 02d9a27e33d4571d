package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// Stock changes the stock of campaigns, and keeps the commands that tell the
// engine (the outbox).
//
// A change, its row in adjustments and the engine's command are written in one
// transaction, in which the shard's row is locked: a load of the shard comes
// before all three, or after. The ref of an adjustment makes it happen once.
// stock_total and stock_left move together, in the shard's row and in the
// campaign's.
type Stock struct{ db *sqldb.DB }

// command is how the outbox stores an adjustment, or releases. It has the
// shard's epoch at the time it was written: the engine refuses one of an older
// epoch, since the load that began the newer one counted what it carries.
type command struct {
	Campaign  uint32   `json:"campaign"`
	Shard     uint8    `json:"shard"`
	Epoch     uint16   `json:"epoch"`
	Ref       string   `json:"ref,omitempty"`
	Delta     int64    `json:"delta,omitempty"`
	FirstItem uint32   `json:"first_item,omitempty"`
	Items     []string `json:"items,omitempty"`
	Numbers   []uint32 `json:"numbers,omitempty"`
	// Releases are claims, by epoch and seq.
	Releases [][2]uint32 `json:"releases,omitempty"`
}

// insert writes the command to the outbox.
func (c *command) insert(ctx context.Context, s *sqldb.Session) error {
	stored := *c
	stored.Items = make([]string, len(c.Items))
	for i, v := range c.Items {
		stored.Items[i] = s.Codes.Seal(v, itemPlace(c.Campaign))
	}
	payload, err := stored.payload()
	if err != nil {
		return err
	}
	return s.Do(ctx, `INSERT INTO outbox (campaign, shard, epoch, payload) VALUES (?,?,?,?)`, c.Campaign, c.Shard, c.Epoch, payload)
}

func (c *command) payload() ([]byte, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		err = fmt.Errorf("write the command: %w", err)
	}
	return payload, err
}

// storedCommand is a command as it is stored, with the number of its row.
type storedCommand struct {
	command
	id int64
}

// scanStored reads the id and the payload of a command, whose items stay as they are stored.
func scanStored(rows *sql.Rows, c *storedCommand) error {
	var payload []byte
	if err := rows.Scan(&c.id, &payload); err != nil {
		return err
	}
	if err := json.Unmarshal(payload, &c.command); err != nil {
		return fmt.Errorf("%w: command %d: %w", dibs.ErrCorrupt, c.id, err)
	}
	return nil
}

// scanCommand reads the id and the payload of a command.
func (st *Stock) scanCommand(rows *sql.Rows, found *live.Command) error {
	var c storedCommand
	if err := scanStored(rows, &c); err != nil {
		return err
	}
	found.ID = c.id
	for i, stored := range c.Items {
		var err error
		if c.Items[i], err = openItem(st.db.Codes(), c.Campaign, stored); err != nil {
			return err
		}
	}
	found.Shard = dibs.ShardID{Campaign: c.Campaign, Shard: c.Shard}
	if len(c.Releases) == 0 {
		found.Adjust = dibs.Adjustment{
			Shard: found.Shard, Epoch: c.Epoch, Ref: c.Ref, Delta: c.Delta, FirstItem: c.FirstItem, Items: c.Items, Numbers: c.Numbers,
		}
	}
	for _, at := range c.Releases {
		cursor := dibs.Cursor{Epoch: uint16(at[0]), Seq: at[1]}
		found.Releases = append(found.Releases, dibs.Release{Claim: dibs.Position{ShardID: found.Shard, Cursor: cursor}, Epoch: c.Epoch})
	}
	return nil
}

// Commands returns the oldest commands that wait for the engine, after an id.
func (st *Stock) Commands(ctx context.Context, after int64, most int) ([]live.Command, error) {
	return sqldb.ReadList(ctx, st.db, "list commands", `SELECT id, payload FROM outbox WHERE id > ? ORDER BY id LIMIT ?`, []any{after, most}, st.scanCommand)
}

// renewMost is the most commands that one transaction stores anew; each may have commandItems items.
const renewMost = 20

// renewCommands stores the items of the commands that wait as renew returns them. A command that a node drops meanwhile
// stays away.
func (st *Stock) renewCommands(ctx context.Context, renew func(stored, place string) (string, error)) error {
	for after, more := int64(0), true; more; {
		var last int64
		if err := st.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "encrypt commands", func(s *sqldb.Session) error {
			waiting, err := sqldb.List(ctx, s, `SELECT id, payload FROM outbox WHERE id > ? ORDER BY id LIMIT ?`, []any{after, renewMost}, scanStored)
			if err != nil {
				return err
			}
			for i := range waiting {
				if err := waiting[i].renew(ctx, s, renew); err != nil {
					return err
				}
				last = waiting[i].id
			}
			more = len(waiting) == renewMost
			return nil
		}); err != nil {
			return err
		}
		after = last
	}
	return nil
}

// renew stores the items of a command as renew returns them.
func (c *storedCommand) renew(ctx context.Context, s *sqldb.Session, renew func(stored, place string) (string, error)) error {
	changed := false
	for i, stored := range c.Items {
		value, err := renew(stored, itemPlace(c.Campaign))
		if err != nil {
			return fmt.Errorf("command %d of campaign %d: %w", c.id, c.Campaign, err)
		}
		c.Items[i], changed = value, changed || value != stored
	}
	if !changed {
		return nil
	}
	payload, err := c.payload()
	if err != nil {
		return err
	}
	return s.Do(ctx, `UPDATE outbox SET payload = ? WHERE id = ?`, payload, c.id)
}

// DropCommands removes commands that the engine has carried out, in one transaction. A
// command that is gone already is no error. An older ledger, restored or promoted, gives the
// ids of commands that it lost to others, which stay.
func (st *Stock) DropCommands(ctx context.Context, commands []live.Command) error {
	return st.db.Write(ctx, "drop commands", func(s *sqldb.Session) error {
		for i := range commands {
			cmd := &commands[i]
			waiting, err := sqldb.List(ctx, s, `SELECT id, payload FROM outbox WHERE id = ?`+s.ForUpdate, []any{cmd.ID}, scanStored)
			if err != nil {
				return err
			}
			if len(waiting) == 0 || !waiting[0].is(cmd) {
				continue
			}
			if err := s.Do(ctx, `DELETE FROM outbox WHERE id = ?`, cmd.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// is reports whether a stored command is the one that was read. Its items do not tell: they
// may be encrypted anew meanwhile.
func (c *command) is(cmd *live.Command) bool {
	return c.Campaign == cmd.Shard.Campaign && c.Shard == cmd.Shard.Shard && c.Epoch == cmd.Epoch() && c.Ref == cmd.Adjust.Ref &&
		slices.EqualFunc(c.Releases, cmd.Releases, func(stored [2]uint32, r dibs.Release) bool {
			return stored == [2]uint32{uint32(r.Claim.Epoch), r.Claim.Seq}
		})
}

// Restock adds stock and writes the engine's command, in one transaction. A
// repeat of the ref changes nothing. A negative delta withdraws from a shard
// that no engine has opened; more than is left is an *Error of InvalidState. An
// item that the campaign has already is an *Error of InvalidRequest that names
// its place in the list. ErrNotFound.
func (st *Stock) Restock(ctx context.Context, r campaigns.Restock) error {
	return st.db.Write(ctx, "restock "+r.Shard.String(), func(s *sqldb.Session) error {
		s.ManyRows(int64(len(r.Items)))
		if err := countedFrom(ctx, s, r); err != nil {
			return err
		}
		parts := []campaigns.Restock{r}
		if r.Spread {
			var err error
			if parts, err = dealOut(ctx, s, r); err != nil {
				return err
			}
		}
		for i := range parts {
			// The first part has the ref itself: it is new, or none of them is.
			fresh, err := st.restockShard(ctx, s, parts[i])
			if err != nil || fresh == 0 {
				return err
			}
		}
		// A draft of another stock is another version: who publishes or changes the one that they saw is told.
		if err := s.Do(ctx, `UPDATE campaigns SET version = version + 1 WHERE number = ? AND state = ?`,
			r.Shard.Campaign, string(dibs.Draft)); err != nil {
			return err
		}
		return appendStockChange(ctx, s, r)
	})
}

// countedFrom locks a shard and its campaign, and returns ErrConflict when the campaign's
// stock is another than the change was counted from.
func countedFrom(ctx context.Context, s *sqldb.Session, r campaigns.Restock) error {
	if r.Of == nil {
		return nil
	}
	if _, _, err := lockForStock(ctx, s, r.Shard); err != nil {
		return err
	}
	total, err := sqldb.Get[int64](ctx, s, `SELECT stock_total FROM campaigns WHERE number = ?`+s.ForUpdate, r.Shard.Campaign)
	if err == nil && total != *r.Of {
		err = fmt.Errorf("%w: campaign %d has a stock of %d, not of %d", dibs.ErrConflict, r.Shard.Campaign, total, *r.Of)
	}
	return err
}

// restockShard is Restock for one shard, but for what the feed tells. It returns 0,
// and changes nothing, when the ref exists.
func (st *Stock) restockShard(ctx context.Context, s *sqldb.Session, r campaigns.Restock) (fresh int64, err error) {
	epoch, kind, err := lockForStock(ctx, s, r.Shard)
	if err != nil {
		return 0, err
	}
	fresh, err = insertAdjustment(ctx, s, r)
	if err != nil || fresh == 0 {
		return 0, err
	}
	// Without an engine the ledger decides what can be withdrawn; else the
	// engine does, since it grants.
	if r.Delta < 0 && epoch == 0 {
		return fresh, takeFromDraft(ctx, s, r, kind)
	}
	// Checked after the ref: a repeat is answered as the first time,
	// whatever else is in it.
	if err := checkRestock(r, kind); err != nil {
		return 0, err
	}
	return fresh, st.add(ctx, s, r, epoch)
}

// lockForStock keeps the shard's epoch as it is until the transaction ends, and
// returns it with the kind of the campaign's stock. The campaign's row is
// locked too. ErrNotFound for a shard that does not exist.
func lockForStock(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) (epoch uint16, kind dibs.StockKind, err error) {
	err = s.Row(ctx, `SELECT p.epoch, c.stock_kind FROM positions p JOIN campaigns c ON c.number = p.campaign
		WHERE p.campaign = ? AND p.shard = ?`+s.ForUpdate, []any{shard.Campaign, shard.Shard}, &epoch, &kind)
	return epoch, kind, orNotFound(err, aShard, shard)
}

// insertAdjustment records a change of the stock, and returns 0 when its ref
// exists.
func insertAdjustment(ctx context.Context, s *sqldb.Session, r campaigns.Restock) (int64, error) {
	return s.InsertNew(ctx, `INSERT INTO adjustments (campaign, shard, ref, delta, why, at) VALUES (?,?,?,?,?,?)`,
		r.Shard.Campaign, r.Shard.Shard, r.Ref, r.Delta, r.Why, s.Now().UnixMilli())
}

// checkRestock makes sure that the change suits the kind of the stock.
func checkRestock(r campaigns.Restock, kind dibs.StockKind) error {
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

// add raises the stock, adds the items and writes the engine's command.
func (st *Stock) add(ctx context.Context, s *sqldb.Session, r campaigns.Restock, epoch uint16) error {
	if err := moveStock(ctx, s, r); err != nil {
		return err
	}
	cmd := command{Campaign: r.Shard.Campaign, Shard: r.Shard.Shard, Epoch: epoch, Ref: r.Ref, Delta: r.Delta, Items: r.Items}
	if len(r.Items) > 0 {
		first, err := nextItem(ctx, s, r.Shard.Campaign)
		if err != nil {
			return err
		}
		cmd.FirstItem = uint32(first)
		if r.Spread {
			// The shard's items have gaps between them, where those of others are.
			for i := range r.Items {
				cmd.Numbers = append(cmd.Numbers, uint32(first+i))
			}
		}
		if err := insertItems(ctx, st.db, s, newItems{
			campaign: r.Shard.Campaign, first: first, values: r.Items, field: "/items",
			shardOf: func(int) int { return int(r.Shard.Shard) },
		}); err != nil {
			return err
		}
	}
	return cmd.insert(ctx, s)
}

// moveStock changes the stock of the shard and of its campaign. r.Delta may be
// negative. The constraints of the tables refuse to take more than is left.
func moveStock(ctx context.Context, s *sqldb.Session, r campaigns.Restock) error {
	err := s.Do(ctx, `UPDATE campaigns SET stock_total = stock_total + ?, stock_left = stock_left + ? WHERE number = ?`,
		r.Delta, r.Delta, r.Shard.Campaign)
	if err == nil {
		err = addStock(ctx, s, r.Shard, r.Delta)
	}
	if err == nil {
		err = clearLow(ctx, s, r.Shard.Campaign)
	}
	return err
}

// addStock changes the stock of a shard alone.
func addStock(ctx context.Context, s *sqldb.Session, shard dibs.ShardID, units int64) error {
	return s.Do(ctx, `UPDATE positions SET stock = stock + ?, stock_left = stock_left + ? WHERE campaign = ? AND shard = ?`,
		units, units, shard.Campaign, shard.Shard)
}

// onlyLeft refuses a withdrawal of more than is left.
func onlyLeft(left int64) error {
	return dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", left))
}

// takeFromDraft lowers the stock of a shard that no engine has opened: no
// engine has to be asked what is left. Items go from the end.
func takeFromDraft(ctx context.Context, s *sqldb.Session, r campaigns.Restock, kind dibs.StockKind) error {
	left, err := sqldb.Get[int64](ctx, s, `SELECT stock_left FROM positions WHERE campaign = ? AND shard = ?`,
		r.Shard.Campaign, r.Shard.Shard)
	if err != nil {
		return err
	}
	if left+r.Delta < 0 {
		return onlyLeft(left)
	}
	if kind != dibs.Units {
		n, err := s.Exec(ctx, `UPDATE items SET withdrawn = 1 WHERE campaign = ? AND n IN (SELECT n FROM (SELECT n FROM items
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

// StockChanges returns by how much the stock was changed under a ref and its parts: the
// recorded deltas, and those of withdrawals in quarantine.
func (st *Stock) StockChanges(ctx context.Context, campaign uint32, ref string) ([]int64, error) {
	// The sign after a space is the next character that a ref can have.
	next := ref + "!"
	return sqldb.ReadList(ctx, st.db, "look up a ref", `SELECT delta FROM adjustments WHERE campaign = ? AND ref >= ? AND ref < ?
		UNION ALL SELECT quantity FROM quarantine WHERE campaign = ? AND ref >= ? AND ref < ?`,
		[]any{campaign, ref, next, campaign, ref, next}, sqldb.Scan1[int64])
}

// FreeItems lists the items of a campaign that no claim has and that were not
// withdrawn, by their numbers.
func (st *Stock) FreeItems(ctx context.Context, campaign uint32, page dibs.Page) (dibs.List[campaigns.FreeItem], error) {
	return readPage(ctx, st.db, "list free items", page, int64(-1), func(after int64) query {
		return query{`SELECT n, value FROM items WHERE campaign = ? AND n > ? AND claim_epoch IS NULL AND withdrawn = 0 ORDER BY n LIMIT ?`,
			[]any{campaign, after}}
	}, func(rows *sql.Rows, it *campaigns.FreeItem) error {
		err := rows.Scan(&it.N, &it.Value)
		if err == nil {
			it.Value, err = openItem(st.db.Codes(), campaign, it.Value)
		}
		return err
	}, func(it *campaigns.FreeItem) int64 { return int64(it.N) })
}
