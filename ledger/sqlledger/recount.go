package sqlledger

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// Recount makes the sums beside a campaign's rows what the rows add up to, in
// one transaction in which nothing of the campaign is settled, and returns the
// sums that differed, in words. It changes no claim. An *Error of InvalidState,
// and no change, when the rows contradict one another: more held than there is,
// or items that are missing.
func (ad *Audits) Recount(ctx context.Context, c *dibs.Campaign) ([]string, error) {
	op := "recount campaign " + c.ID
	return sqldb.Result(sqldb.Long(ctx, sqldb.AuditStatement), ad.db.Write, op, func(s *sqldb.Session) ([]string, error) {
		au := newAuditor(s, c)
		if err := inTurn(ctx, au.lock, au.countStock, au.countClaims, au.countQuarantine, au.countItems, au.checkConsistent, au.recountQuarantine,
			au.compareTotals, au.compareProduct); err != nil || len(au.a.BadTotals) == 0 {
			return nil, err
		}
		return au.a.BadTotals, au.writeSums(ctx)
	})
}

// lock locks the rows that settling changes: nothing of the campaign is settled
// until the transaction ends. The order is that of settling: shards by number, then
// the campaign.
func (au *auditor) lock(ctx context.Context) error {
	if _, err := shardsOf(ctx, au.s, au.c.Number); err != nil {
		return err
	}
	return mustExist(ctx, au.s, `SELECT 1 FROM campaigns WHERE number = ?`+au.s.ForUpdate, aCampaign, au.c.Number)
}

// shardsOf locks the rows of a campaign's shards, and lists the shards by number.
func shardsOf(ctx context.Context, s *sqldb.Session, campaign uint32) ([]uint8, error) {
	return sqldb.List(ctx, s, `SELECT shard FROM positions WHERE campaign = ? ORDER BY shard`+s.ForUpdate, []any{campaign}, sqldb.Scan1[uint8])
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
			if err := au.s.Do(ctx, `UPDATE quarantine SET counted = ? WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ?`,
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
		none := fmt.Errorf("%w: campaign %s has no row of shard %d", dibs.ErrCorrupt, au.c.ID, shard)
		if err := au.s.DoOne(ctx, none, `UPDATE positions SET stock = ?, stock_left = ?, pending = ?, confirmed = ?, released = ?, refunded = ?
			WHERE campaign = ? AND shard = ?`, n.stock, n.left(), n.total(dibs.Pending), n.total(dibs.Confirmed),
			n.total(dibs.Released), n.total(dibs.Refunded), au.c.Number, shard); err != nil {
			return err
		}
	}
	left := au.a.Stock - au.a.Held - au.a.Withheld
	err := au.s.Do(ctx, `UPDATE campaigns SET stock_total = ?, stock_left = ? WHERE number = ?`, au.a.Stock, left, au.c.Number)
	if err == nil && au.c.Regular() {
		err = au.s.Do(ctx, `UPDATE products SET stock = ?, stock_left = ? WHERE id = ?`, au.a.Stock, left, au.c.ProductID)
	}
	return err
}
