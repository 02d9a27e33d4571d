package sqlledger

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/audit"
)

// Recount makes the sums beside a campaign's rows what the rows add up to, in
// one transaction in which nothing of the campaign is settled, and returns the
// sums that differed, in words. It changes no claim. An *Error of InvalidState,
// and no change, when the rows contradict one another: more held than there is,
// or items that are missing.
func (ad *Audits) Recount(ctx context.Context, c *dibs.Campaign) ([]string, error) {
	var changed []string
	err := ad.db.Write(sqldb.Long(ctx, sqldb.AuditStatement), "recount campaign "+c.ID, func(s *sqldb.Session) error {
		if err := lockCampaign(ctx, s, c.Number); err != nil {
			return err
		}
		au := &auditor{s: s, c: c, a: &audit.CampaignAudit{ByStatus: make(map[string]int64)}}
		for _, step := range []func(context.Context) error{
			au.countStock, au.countClaims, au.countQuarantine, au.countItems, au.checkConsistent, au.recountQuarantine, au.compareTotals, au.compareProduct,
		} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		changed = au.a.BadTotals
		if len(changed) == 0 {
			return nil
		}
		return au.writeSums(ctx)
	})
	return changed, err
}

// lockCampaign locks the rows that settling changes: nothing of the campaign is
// settled until the transaction ends. The order is that of settling: shards by
// number, then the campaign.
func lockCampaign(ctx context.Context, s *sqldb.Session, number uint32) error {
	if _, err := sqldb.List(ctx, s, `SELECT shard FROM positions WHERE campaign = ? ORDER BY shard`+s.ForUpdate, []any{number}, sqldb.Scan1[int]); err != nil {
		return err
	}
	var left int64
	err := s.Row(ctx, `SELECT stock_left FROM campaigns WHERE number = ?`+s.ForUpdate, []any{number}, &left)
	return orNotFound(err, aCampaign, number)
}

// checkConsistent refuses to sum up rows that contradict one another. Sums of
// such rows would hide what is wrong, and an engine that loads them could sell
// units that others hold.
func (au *auditor) checkConsistent(context.Context) error {
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

// recountQuarantine counts each entry in quarantine for what it granted, as far
// as there is stock. The count of an entry when it was put into quarantine
// depends on the sums of that time, which may have been wrong.
func (au *auditor) recountQuarantine(ctx context.Context) error {
	au.a.Withheld = 0
	for shard := range au.shards {
		n := &au.shards[shard]
		n.withheld = 0
		for i := range n.quarantined {
			h := &n.quarantined[i]
			counted := min(h.units(), n.left())
			n.withheld += counted
			if counted == h.counted {
				continue
			}
			h.counted = counted
			if _, err := au.s.Exec(ctx, `UPDATE quarantine SET counted = ? WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
				counted, au.c.Number, shard, h.Epoch, int64(h.Seq)); err != nil {
				return err
			}
		}
		au.a.Withheld += n.withheld
	}
	return nil
}

// writeSums writes what was counted in place of the sums. The product of
// regular orders has the same stock as its campaign.
func (au *auditor) writeSums(ctx context.Context) error {
	for shard := range au.shards {
		n := &au.shards[shard]
		changed, err := au.s.Exec(ctx, `UPDATE positions SET stock = ?, stock_left = ?, pending = ?, confirmed = ?, released = ?, refunded = ?
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
	_, err := au.s.Exec(ctx, `UPDATE campaigns SET stock_total = ?, stock_left = ? WHERE number = ?`, au.a.Stock, left, au.c.Number)
	if err == nil && au.c.Regular() {
		_, err = au.s.Exec(ctx, `UPDATE products SET stock = ?, stock_left = ? WHERE id = ?`, au.a.Stock, left, au.c.ProductID)
	}
	return err
}
