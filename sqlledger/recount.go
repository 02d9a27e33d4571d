package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
)

// Recount implements dibs.Mending.
func (l *Ledger) Recount(ctx context.Context, c *dibs.Campaign) ([]string, error) {
	var changed []string
	err := l.write(long(ctx, auditStatement), "recount campaign "+c.ID, func(s *session) error {
		if err := lockCampaign(ctx, s, c.Number); err != nil {
			return err
		}
		au := &auditor{s: s, c: c, a: &audit.CampaignAudit{ByStatus: make(map[string]int64)}}
		for _, step := range []func(context.Context) error{au.countStock, au.countClaims, au.countQuarantine, au.countItems} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		if err := au.possible(); err != nil {
			return err
		}
		if err := au.countAside(ctx); err != nil {
			return err
		}
		if err := au.compareTotals(ctx); err != nil {
			return err
		}
		if err := au.compareProduct(ctx); err != nil {
			return err
		}
		changed = au.a.BadTotals
		if len(changed) == 0 {
			return nil
		}
		return au.writeSums(ctx)
	})
	return changed, err
}

// lockCampaign keeps the rows that settling changes: nothing of the campaign is
// settled until the transaction ends.
func lockCampaign(ctx context.Context, s *session, number uint32) error {
	err := s.each(ctx, `SELECT shard FROM positions WHERE campaign = ? ORDER BY shard`+s.d.forUpdate, []any{number},
		func(rows *sql.Rows) error {
			var shard int
			return rows.Scan(&shard)
		})
	if err != nil {
		return err
	}
	var left int64
	err = s.row(ctx, `SELECT stock_left FROM campaigns WHERE number = ?`+s.d.forUpdate, []any{number}, &left)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(aCampaign, number)
	}
	return err
}

// possible refuses to sum up rows that contradict one another.
func (au *auditor) possible() error {
	for i := range au.shards {
		n := &au.shards[i]
		if n.held > n.stock {
			return dibs.Fail(dibs.InvalidState, dibs.Textf("shard %d has %d units of which %d are held: claims are not changed",
				"分片 %d 共 %d 件，却有 %d 件被领取：不会修改领取记录", i, n.stock, n.held))
		}
		if au.c.HasItems() && (n.items != n.stock || n.free != n.stock-n.held) {
			return dibs.Fail(dibs.InvalidState, dibs.Textf(
				"shard %d should have %d items, %d of them free, and has %d and %d: bring the rows of items back from a backup",
				"分片 %d 应有 %d 个物品，其中 %d 个空闲，实有 %d 和 %d：请从备份恢复物品记录", i, n.stock, n.stock-n.held, n.items, n.free))
		}
	}
	return nil
}

// countAside lets each entry in quarantine take what it granted, as far as
// there is stock.
func (au *auditor) countAside(ctx context.Context) error {
	au.a.Withheld = 0
	for shard := range au.shards {
		n := &au.shards[shard]
		n.withheld = 0
		for i := range n.aside {
			h := &n.aside[i]
			counted := min(h.units(), n.left())
			n.withheld += counted
			if counted == h.counted {
				continue
			}
			h.counted = counted
			if _, err := au.s.exec(ctx, `UPDATE quarantine SET counted = ? WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
				counted, au.c.Number, shard, h.Epoch, int64(h.Seq)); err != nil {
				return err
			}
		}
		au.a.Withheld += n.withheld
	}
	return nil
}

// writeSums makes the sums what was counted.
func (au *auditor) writeSums(ctx context.Context) error {
	for shard := range au.shards {
		n := &au.shards[shard]
		changed, err := au.s.exec(ctx, `UPDATE positions SET stock = ?, stock_left = ?, pending = ?, confirmed = ?, released = ?, refunded = ?
			WHERE campaign = ? AND shard = ?`, n.stock, n.left(), n.total(dibs.Pending), n.total(dibs.Confirmed),
			n.total(dibs.Released), n.total(dibs.Refunded), au.c.Number, shard)
		if err != nil {
			return err
		}
		if changed != 1 {
			return fmt.Errorf("%w: campaign %s has no row of shard %d", dibs.ErrCorrupt, au.c.ID, shard)
		}
	}
	left := au.a.Stock - au.a.Held - au.a.Withheld
	_, err := au.s.exec(ctx, `UPDATE campaigns SET stock_total = ?, stock_left = ? WHERE number = ?`, au.a.Stock, left, au.c.Number)
	if err == nil && au.c.Regular() {
		_, err = au.s.exec(ctx, `UPDATE products SET stock = ?, stock_left = ? WHERE id = ?`, au.a.Stock, left, au.c.ProductID)
	}
	return err
}
