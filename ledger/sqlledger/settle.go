package sqlledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
	"github.com/dibs-dev/dibs/live"
)

// Settlement moves journal entries into the ledger, each exactly once. It keeps
// the shards' rows in positions, the entries in quarantine, and the engine's
// servers.
//
// These hold between two transactions:
//   - pos_epoch and pos_seq are the last entry that was settled or put into
//     quarantine. They move by compare-and-set, in the transaction that writes
//     what the entries say.
//   - epoch, the fence, is not below pos_epoch and only rises. A batch that was
//     read under another epoch changes nothing.
//   - stock_left, and the sums by status, are what the rows of claims and of
//     the quarantine add up to; the campaign's stock_left is the sum of its
//     shards'.
//
// Locks are taken in the order claims, shard (by number), campaign, feed. A
// transaction with a transfer locks all of its shards before anything else.
type Settlement struct{ db *sqldb.DB }

// Settle writes batches of different shards in one transaction: claims, items,
// the sums once per batch, and the position by compare-and-set. When it returns
// an error, nothing is written, unless a commit failed (dibs.EffectUnknown):
// then the position tells.
//
//   - ErrFenced: a shard's epoch is not the batch's Fence.
//   - ErrPositionMoved: a batch does not continue its shard's committed
//     position.
//   - ErrGap: a batch's entries do not follow one another from From to To.
//   - ErrPoison: a batch has an entry that no repeat will make settle, with
//     ErrCorrupt when the entry contradicts itself. A constraint of the
//     database that fires is ErrPoison too; none ever should.
//   - ErrForked: the ledger has a claim at an entry's position already.
//   - ErrNotLeft: units have arrived that have left no shard, and the batch has no UnknownTransfers.
func (st *Settlement) Settle(ctx context.Context, batches []live.Batch) error {
	sums := make([]batchSums, len(batches))
	for i := range batches {
		var err error
		if sums[i], err = checkBatch(&batches[i]); err != nil {
			return st.blamed(refusedBefore("settle "+batches[i].Shard.String(), err))
		}
	}
	return st.blamed(st.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "settle", func(s *sqldb.Session) error {
		var rows []feedRow
		if err := lockForTransfers(ctx, s, batches, sums); err != nil {
			return err
		}
		for i := range batches {
			// The sums change on the way, and the transaction may run again.
			sum := sums[i]
			if err := settleBatch(ctx, s, &batches[i], &sum); err != nil {
				return fmt.Errorf("shard %s: %w", batches[i].Shard, err)
			}
			var err error
			if rows, err = stockRows(ctx, s, grantRows(rows, &batches[i]), &batches[i], &sum); err != nil {
				return err
			}
		}
		return appendFeed(ctx, s, rows)
	}))
}

// blamed adds to an error of settling whether the entries themselves are to
// blame: what a constraint or a check of theirs refused will be refused again.
func (st *Settlement) blamed(err error) error {
	if err == nil || errors.Is(err, dibs.ErrPositionMoved) || errors.Is(err, dibs.ErrFenced) || errors.Is(err, dibs.ErrForked) {
		return err
	}
	switch fault := st.db.Fault(err); {
	case fault == sqldb.FaultUnique:
		// The only key that settling can find taken is a claim's position.
		return fmt.Errorf("%w: %w", dibs.ErrForked, err)
	case fault == sqldb.FaultConstraint, errors.Is(err, dibs.ErrInvalid), errors.Is(err, dibs.ErrCorrupt) && fault != sqldb.FaultCorrupt:
		return fmt.Errorf("%w: %w", dibs.ErrPoison, err)
	}
	return err
}

// batchSums are what a batch adds up to.
type batchSums struct {
	// grants counts claims, units what they took.
	grants int
	units  int64
	// items counts the items that the claims took.
	items int
	// withdrawn is what withdrawals took, and moved what left for other shards, as
	// positive numbers. Settling lowers them when it finds one settled before.
	withdrawn, moved int64
	// arrived are the refs of units that came from other shards.
	arrived []string
	// low says that the batch brought the stock down to the level of the
	// operators' warning.
	low bool
}

// checkBatch makes sure that the entries are the journal's next ones without a
// gap, and adds them up.
func checkBatch(b *live.Batch) (batchSums, error) {
	var sum batchSums
	if b.Campaign.Number != b.Shard.Campaign {
		return sum, fmt.Errorf("a batch of shard %s names campaign %d", b.Shard, b.Campaign.Number)
	}
	last := b.From
	for i := range b.Entries {
		e := &b.Entries[i]
		if !follows(e, last) {
			return sum, fmt.Errorf("%w: the entry at %s follows the one at %s", dibs.ErrGap, e.Cursor, last)
		}
		last = e.Cursor
		if err := sum.add(b.Campaign, e); err != nil {
			return sum, err
		}
	}
	if last != b.To {
		return sum, fmt.Errorf("%w: the batch ends at %s instead of %s", dibs.ErrGap, last, b.To)
	}
	return sum, nil
}

// follows reports whether an entry is the next one after a position.
func follows(e *dibs.Entry, last dibs.Cursor) bool {
	if e.Kind == dibs.EntryOpen {
		return e.Seq == 1 && e.Epoch > last.Epoch && e.Prev == last
	}
	// Only an opening entry can be the first of a shard.
	return last != dibs.Cursor{} && e.Epoch == last.Epoch && e.Seq == last.Seq+1 && e.Seq != 0
}

// add adds an entry, or returns ErrCorrupt for one that contradicts itself or
// its campaign.
func (sum *batchSums) add(c *dibs.Campaign, e *dibs.Entry) error {
	switch e.Kind {
	case dibs.EntryGrant:
		if e.Quantity < 1 || c.HasItems() && int64(len(e.Items)) != e.Quantity || !c.HasItems() && len(e.Items) > 0 {
			return fmt.Errorf("%w: the entry at %s grants %d with %d items", dibs.ErrCorrupt, e.Cursor, e.Quantity, len(e.Items))
		}
		sum.grants++
		sum.units += e.Quantity
		sum.items += len(e.Items)
	case dibs.EntryAdjust:
		if e.Quantity >= 0 {
			if _, ok := dibs.TransferOf(e.Ref); ok {
				sum.arrived = append(sum.arrived, e.Ref)
			}
			return nil
		}
		if e.Ref == "" || c.HasItems() && int64(len(e.Items)) != -e.Quantity {
			return fmt.Errorf("%w: the entry at %s withdraws %d with %d items and ref %q",
				dibs.ErrCorrupt, e.Cursor, -e.Quantity, len(e.Items), e.Ref)
		}
		if _, ok := dibs.TransferOf(e.Ref); ok {
			sum.moved -= e.Quantity
		} else {
			sum.withdrawn -= e.Quantity
		}
	case dibs.EntryOpen, dibs.EntryRelease:
		// They move nothing but the position.
	case dibs.EntryUnreadable:
		return fmt.Errorf("%w: the entry at %s cannot be read", dibs.ErrCorrupt, e.Cursor)
	default:
		return fmt.Errorf("%w: the entry at %s is of no known kind %d", dibs.ErrCorrupt, e.Cursor, e.Kind)
	}
	return nil
}

// settleBatch writes one batch within the transaction.
func settleBatch(ctx context.Context, s *sqldb.Session, b *live.Batch, sum *batchSums) error {
	if err := haveLeft(ctx, s, b, sum); err != nil {
		return err
	}
	// Withdrawals and transfers come before the position, since they say by how
	// much the sums move.
	if err := withdraw(ctx, s, b, sum); err != nil {
		return err
	}
	if err := movePosition(ctx, s, b, sum); err != nil {
		return err
	}
	if sum.grants > 0 {
		if err := insertGrants(ctx, s, b); err != nil {
			return err
		}
		if err := insertReferencesOf(ctx, s, b); err != nil {
			return err
		}
	}
	if sum.items > 0 {
		if err := assignItems(ctx, s, b); err != nil {
			return err
		}
	}
	// The campaign's row comes last: settlers of all its shards meet here, and
	// hold it for as short as possible.
	taken := sum.units + sum.withdrawn
	if taken == 0 {
		return nil
	}
	n, err := s.Exec(ctx, `UPDATE campaigns SET stock_total = stock_total - ?, stock_left = stock_left - ? WHERE number = ?`,
		sum.withdrawn, taken, b.Shard.Campaign)
	if err == nil && n != 1 {
		err = notFound(aCampaign, b.Shard.Campaign)
	}
	if err == nil && b.Campaign.LowStock > 0 {
		sum.low, err = markLow(ctx, s, b.Shard.Campaign)
	}
	return err
}

// insertReferencesOf writes the references of a batch's grants.
func insertReferencesOf(ctx context.Context, s *sqldb.Session, b *live.Batch) error {
	var args []any
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Kind == dibs.EntryGrant {
			args = appendReference(args, b.Shard, e.Cursor, e.Reference)
		}
	}
	return insertReferences(ctx, s, args)
}

// movePosition moves the shard's committed position and sums in one
// compare-and-set: a second settler, or one that read its batch before the
// shard was loaded anew, changes nothing.
func movePosition(ctx context.Context, s *sqldb.Session, b *live.Batch, sum *batchSums) error {
	pending, confirmed := sum.units, int64(0)
	if b.Campaign.InitialStatus() == dibs.Confirmed {
		pending, confirmed = confirmed, pending
	}
	n, err := s.Exec(ctx, `UPDATE positions SET pos_epoch = ?, pos_seq = ?, stock = stock - ?, stock_left = stock_left - ?,
		pending = pending + ?, confirmed = confirmed + ?
		WHERE campaign = ? AND shard = ? AND pos_epoch = ? AND pos_seq = ? AND epoch = ?`,
		b.To.Epoch, b.To.Seq, sum.withdrawn+sum.moved, sum.units+sum.withdrawn+sum.moved, pending, confirmed,
		b.Shard.Campaign, b.Shard.Shard, b.From.Epoch, b.From.Seq, b.Fence)
	if err == nil && n != 1 {
		err = notMoved(ctx, s, b)
	}
	return err
}

// notMoved says why the compare-and-set of a batch changed nothing. It is
// called in the transaction of the UPDATE, and so sees the row that the UPDATE
// did not find.
func notMoved(ctx context.Context, s *sqldb.Session, b *live.Batch) error {
	epoch, err := sqldb.Get[uint16](ctx, s, `SELECT epoch FROM positions WHERE campaign = ? AND shard = ?`, b.Shard.Campaign, b.Shard.Shard)
	switch {
	case err != nil:
		return orNotFound(err, aShard, b.Shard)
	case epoch != b.Fence:
		return fenced(b, epoch)
	}
	return dibs.ErrPositionMoved
}

// fenced refuses a batch of another epoch than its shard is in.
func fenced(b *live.Batch, epoch uint16) error {
	return fmt.Errorf("%w: shard %s was read under epoch %d and is in epoch %d", dibs.ErrFenced, b.Shard, b.Fence, epoch)
}

// withdraw records the withdrawals of the batch, and those that are the donor's
// half of a transfer, with the other half. One that was settled before, by its ref,
// counts no more. It also takes the withdrawn items out of the stock.
func withdraw(ctx context.Context, s *sqldb.Session, b *live.Batch, sum *batchSums) error {
	locked := s.ForUpdate == ""
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryAdjust || e.Quantity >= 0 {
			continue
		}
		if !locked {
			// The shard's row before all others: another settler of the same
			// batch waits here.
			if _, err := lockEpoch(ctx, s, b.Shard); err != nil {
				return err
			}
			locked = true
		}
		n, err := s.InsertNew(ctx, `INSERT INTO adjustments (campaign, shard, ref, delta, why, at) VALUES (?,?,?,?,?,?)`,
			b.Shard.Campaign, b.Shard.Shard, e.Ref, e.Quantity, "", e.At)
		if err != nil {
			return err
		}
		t, transfer := dibs.TransferOf(e.Ref)
		switch {
		// The quantity is negative: the sum no longer has this withdrawal.
		case n == 0 && transfer:
			sum.moved += e.Quantity
			continue
		case n == 0:
			sum.withdrawn += e.Quantity
			continue
		case transfer:
			if err := receive(ctx, s, b.Shard, t, e); err != nil {
				return err
			}
			continue
		}
		if err := withdrawItems(ctx, s, b.Shard, e); err != nil {
			return err
		}
	}
	return nil
}

// insertGrants writes the claims of the batch's grants in multi-row statements.
// A statement holds claims of one epoch.
func insertGrants(ctx context.Context, s *sqldb.Session, b *live.Batch) error {
	_, currency := splitMoney(b.Campaign.Price)
	w := rowWriter{
		to: &formsFor(s).claims, width: 7,
		head: []any{int64(b.Shard.Campaign), int64(b.Shard.Shard), nil, int64(b.Campaign.InitialStatus()), int64(dibs.FlashOrder), currency},
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryGrant {
			continue
		}
		if err := w.begin(ctx, s, e.Epoch); err != nil {
			return err
		}
		amount, _ := splitMoney(b.Campaign.AmountFor(e.Quantity))
		w.rows = append(w.rows, int64(e.Seq), e.UserID, e.Quantity, amount, int64(e.Key), e.PayBy, e.At)
	}
	_, err := w.flush(ctx, s)
	return err
}

// assignItems gives the items of the batch's grants to their claims. Each has
// to be free: one that is not makes the whole batch fail.
func assignItems(ctx context.Context, s *sqldb.Session, b *live.Batch) error {
	w := rowWriter{
		to: &formsFor(s).items, width: 2,
		head: []any{int64(b.Shard.Campaign), int64(b.Shard.Shard), nil},
	}
	given := 0
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryGrant {
			continue
		}
		for _, item := range e.Items {
			if err := w.begin(ctx, s, e.Epoch); err != nil {
				return err
			}
			w.rows = append(w.rows, int64(item), int64(e.Seq))
			given++
		}
	}
	changed, err := w.flush(ctx, s)
	if err == nil && changed != int64(given) {
		err = fmt.Errorf("%w: of %d items granted up to %s, %d were free", dibs.ErrCorrupt, given, b.To, changed)
	}
	return err
}
