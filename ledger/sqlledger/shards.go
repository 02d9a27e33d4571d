package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// A transfer is settled with the donor's withdrawal, in one transaction: the units
// leave the donor's row and join the recipient's, both halves are recorded as
// adjustments, and the outbox has the recipient's command. So the ledger never has
// the units twice, and never on their way: that they are for the engine alone, until
// the recipient's takes the command or is loaded.

// lockForTransfers locks the rows of all shards that the batches change, in the order
// of their numbers, where units may move between them. Who settles transfers in opposite
// directions, or one ahead beside grants of several shards, would wait for the other
// otherwise, and for the campaign's row.
func lockForTransfers(ctx context.Context, s *sqldb.Session, batches []live.Batch, sums []batchSums) error {
	if s.ForUpdate == "" {
		return nil
	}
	var shards []dibs.ShardID
	moves := false
	for i := range batches {
		// A node that goes by an older definition settles transfers, too.
		if sums[i].moved == 0 && batches[i].Campaign.Shards < 2 {
			continue
		}
		shards = append(shards, batches[i].Shard)
		if sums[i].moved == 0 {
			continue
		}
		moves = true
		for j := range batches[i].Entries {
			e := &batches[i].Entries[j]
			if t, ok := dibs.TransferOf(e.Ref); ok && e.Kind == dibs.EntryAdjust && e.Quantity < 0 {
				shards = append(shards, dibs.ShardID{Campaign: batches[i].Shard.Campaign, Shard: t.To})
			}
		}
	}
	if len(shards) < 2 && !moves {
		// One is locked where it is changed.
		return nil
	}
	slices.SortFunc(shards, func(a, b dibs.ShardID) int {
		return cmp.Or(cmp.Compare(a.Campaign, b.Campaign), cmp.Compare(a.Shard, b.Shard))
	})
	for _, shard := range slices.Compact(shards) {
		// Where there is no such shard, receive refuses the transfer.
		if _, err := lockEpoch(ctx, s, shard); err != nil && !errors.Is(err, dibs.ErrNotFound) {
			return err
		}
	}
	return nil
}

// SettleTransfer settles the donor's half of a transfer of units ahead of the entries that
// stand before it in the journal, in the epoch in which the engine decided it. What is left
// in the ledger suffices: it lacks nothing that the engine has granted since. The shard's
// position stays. When the entry's turn comes it counts no more, as its ref tells, and a
// load has the smaller stock and the ref.
func (st *Settlement) SettleTransfer(ctx context.Context, from dibs.ShardID, fence uint16, t dibs.Transfer, units int64) error {
	return st.db.Write(ctx, "settle a transfer from shard "+from.String(), func(s *sqldb.Session) error {
		b := live.Batch{Shard: from, Fence: fence, Entries: []dibs.Entry{
			{Kind: dibs.EntryAdjust, At: s.Now().UnixMilli(), Ref: t.Leaves(), Quantity: -units},
		}}
		sum := batchSums{moved: units}
		if err := lockForTransfers(ctx, s, []live.Batch{b}, []batchSums{sum}); err != nil {
			return err
		}
		epoch, err := lockEpoch(ctx, s, from)
		if err != nil {
			return err
		}
		if epoch != fence {
			return fenced(&b, epoch)
		}
		var kind dibs.StockKind
		var aside int64
		if err := s.Row(ctx, `SELECT c.stock_kind, (SELECT COUNT(*) FROM quarantine q WHERE q.campaign = c.number AND q.ref = ?) FROM campaigns c WHERE c.number = ?`,
			[]any{t.Leaves(), from.Campaign}, &kind, &aside); err != nil {
			return err
		}
		if kind != dibs.Units || aside > 0 {
			return dibs.Fail(dibs.InvalidState, dibs.Text{EN: "only units that are not in quarantine are settled ahead", ZH: "只有不在隔离中的数量型库存可以提前结算"})
		}
		if err := withdraw(ctx, s, &b, &sum); err != nil || sum.moved == 0 {
			return err
		}
		return addStock(ctx, s, from, -units)
	})
}

// haveLeft makes sure that the ledger has the other half of what arrived at a batch's shard.
// One that went back in time lacks it until the donor's journal is settled again, and what
// the shard granted of it would be more than the ledger has there.
func haveLeft(ctx context.Context, s *sqldb.Session, b *live.Batch, sum *batchSums) error {
	if b.UnknownTransfers {
		return nil
	}
	for _, ref := range sum.arrived {
		known, err := sqldb.Get[int64](ctx, s, `SELECT COUNT(*) FROM adjustments WHERE campaign = ? AND shard = ? AND ref = ?`,
			b.Shard.Campaign, b.Shard.Shard, ref)
		if err == nil && known == 0 {
			err = fmt.Errorf("%w: %q", live.ErrNotLeft, ref)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockEpoch locks a shard's row and returns its epoch: no load raises it until the
// transaction ends. ErrNotFound.
func lockEpoch(ctx context.Context, s *sqldb.Session, shard dibs.ShardID) (epoch uint16, err error) {
	epoch, err = sqldb.Get[uint16](ctx, s, `SELECT epoch FROM positions WHERE campaign = ? AND shard = ?`+s.ForUpdate, shard.Campaign, shard.Shard)
	return epoch, orNotFound(err, aShard, shard)
}

// receive adds the units of a transfer to its recipient, and writes the command for
// the recipient's engine. The campaign's own sums stay: its stock is the same. Whether
// there is such a shard is for the ledger to say: the node that settles may not know yet
// that the campaign has more. ErrCorrupt when there is none.
func receive(ctx context.Context, s *sqldb.Session, from dibs.ShardID, t dibs.Transfer, e *dibs.Entry) error {
	to, units := dibs.ShardID{Campaign: from.Campaign, Shard: t.To}, -e.Quantity
	epoch, err := lockEpoch(ctx, s, to)
	if errors.Is(err, dibs.ErrNotFound) {
		return fmt.Errorf("%w: the entry at %s moves %d to shard %s, which there is not", dibs.ErrCorrupt, e.Cursor, units, to)
	}
	if err != nil {
		return err
	}
	n, err := insertAdjustment(ctx, s, campaigns.Restock{Shard: to, Ref: t.Arrives(), Delta: units})
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: the transfer %q has arrived at shard %s and has not left", dibs.ErrCorrupt, t.ID, to)
	}
	if err == nil {
		err = addStock(ctx, s, to, units)
	}
	if err != nil {
		return err
	}
	values, err := moveItems(ctx, s, from, to, e)
	if err != nil || epoch == 0 {
		// Where no engine has opened the shard its first load counts the units.
		return err
	}
	cmd := command{
		Campaign: to.Campaign, Shard: to.Shard, Epoch: epoch, Ref: t.Arrives(), Delta: units, Items: values, Numbers: e.Items,
	}
	return cmd.insert(ctx, s)
}

// moveItems gives the items of a transfer to its recipient, and returns their values
// in the order of the entry. Each has to be free on the donor.
func moveItems(ctx context.Context, s *sqldb.Session, from, to dibs.ShardID, e *dibs.Entry) ([]string, error) {
	moved, err := changeFree(ctx, s, `shard = ?`, []any{to.Shard}, from, e.Items)
	if err != nil {
		return nil, err
	}
	if moved != int64(len(e.Items)) {
		return nil, fmt.Errorf("%w: of %d items that the transfer %q moves, %d were free", dibs.ErrCorrupt, len(e.Items), e.Ref, moved)
	}
	values := make(map[uint32]string, len(e.Items))
	for part := range slices.Chunk(e.Items, withdrawMost) {
		if err := s.Each(ctx, `SELECT n, value FROM items WHERE campaign = ? AND n IN (`+sqldb.Repeat("?", len(part))+`)`,
			append([]any{from.Campaign}, anys(part)...), func(rows *sql.Rows) error {
				var n uint32
				var value string
				err := rows.Scan(&n, &value)
				if err == nil {
					values[n], err = openItem(s.Codes, from.Campaign, value)
				}
				return err
			}); err != nil {
			return nil, err
		}
	}
	var ordered []string
	for _, n := range e.Items {
		ordered = append(ordered, values[n])
	}
	return ordered, nil
}

// loadMoved reads what left the shard by transfers, less what came. A shard of a
// campaign that has no other shard has no transfers.
func loadMoved(ctx context.Context, s *sqldb.Session, c *dibs.Campaign, shard dibs.ShardID, load *dibs.ShardLoad) error {
	if c.Shards < 2 {
		return nil
	}
	// Refs of other changes have one space at most.
	settled, err := sqldb.Get[int64](ctx, s, `SELECT COALESCE(SUM(delta), 0) FROM adjustments
		WHERE campaign = ? AND shard = ? AND ref LIKE 'move % to %'`, shard.Campaign, shard.Shard)
	// Units in quarantine have left the shard too, and are in the load already.
	load.Moved -= settled
	return err
}

// dealOut divides a change of a campaign's stock into changes of its shards, whose
// rows it locks: the shards with the least receive most of a restock, and those with
// the most give most of what is taken from a draft. Each part has a ref of its own;
// the first one has that of the whole. An *Error of InvalidState when more is taken
// than all shards have, ErrNotFound for no such campaign.
func dealOut(ctx context.Context, s *sqldb.Session, r campaigns.Restock) ([]campaigns.Restock, error) {
	left, err := sqldb.List(ctx, s, `SELECT stock_left FROM positions WHERE campaign = ? ORDER BY shard`+s.ForUpdate,
		[]any{r.Shard.Campaign}, sqldb.Scan1[int64])
	if err != nil {
		return nil, err
	}
	if len(left) < 2 {
		r.Spread = false
		return []campaigns.Restock{r}, nil
	}
	sum := int64(0)
	for _, n := range left {
		sum += n
	}
	if sum+r.Delta < 0 {
		return nil, onlyLeft(sum)
	}
	var parts []campaigns.Restock
	items := r.Items
	for shard, delta := range levelled(r.Delta, left) {
		if delta == 0 {
			continue
		}
		part := r
		part.Shard.Shard, part.Delta = uint8(shard), delta
		part.Ref = campaigns.PartRef(r.Ref, len(parts))
		if delta > 0 && len(items) > 0 {
			// A list that is too short is refused with the part that lacks some.
			n := min(int(delta), len(items))
			part.Items, items = items[:n], items[n:]
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		// A change by nothing is refused as that of one shard is.
		return []campaigns.Restock{r}, nil
	}
	return parts, nil
}

// levelled divides a change so that what the shards have left becomes as even as it
// can: no shard changes against the sign of the whole.
func levelled(delta int64, left []int64) []int64 {
	order := make([]int, len(left))
	for i := range order {
		order[i] = i
	}
	up := delta > 0
	slices.SortStableFunc(order, func(a, b int) int {
		if up {
			return cmp.Compare(left[a], left[b])
		}
		return cmp.Compare(left[b], left[a])
	})
	// The first n shards share sum between them; the next one joins while their level
	// has not reached it.
	sum, n := delta, 0
	for n < len(order) {
		next := left[order[n]]
		if n > 0 && (up && next*int64(n) >= sum || !up && next*int64(n) <= sum) {
			break
		}
		sum += next
		n++
	}
	parts := make([]int64, len(left))
	for i := range n {
		parts[order[i]] = partOf(sum, i, n) - left[order[i]]
	}
	return parts
}
