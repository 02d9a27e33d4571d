package sqlledger

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
)

// Settle implements dibs.Settlement.
//
// It returns ErrGap when a batch's entries do not follow one another from
// From to To, and ErrCorrupt beside ErrPoison when an entry contradicts itself.
// Constraints of the database that fire are ErrPoison too; they never should.
func (l *Ledger) Settle(ctx context.Context, batches []dibs.Batch) error {
	sums := make([]batchSums, len(batches))
	for i := range batches {
		var err error
		if sums[i], err = checkBatch(&batches[i]); err != nil {
			return l.refused(l.d.explain("settle "+batches[i].Shard.String(), err))
		}
	}
	return l.refused(l.write(long(ctx, longStatement), "settle", func(s *session) error {
		var news []told
		for i := range batches {
			// The sums change on the way, and the transaction may run again.
			sum := sums[i]
			if err := l.settleBatch(ctx, s, &batches[i], &sum); err != nil {
				return fmt.Errorf("shard %s: %w", batches[i].Shard, err)
			}
			var err error
			if news, err = l.tellStock(ctx, s, tellGrants(news, &batches[i]), &batches[i], &sum); err != nil {
				return err
			}
		}
		return publish(ctx, s, news)
	}))
}

// batchSums are what a batch adds up to.
type batchSums struct {
	// grants counts claims, units what they took.
	grants int
	units  int64
	// items counts the items that the claims took.
	items int
	// withdrawn is what withdrawals took, as a positive number. Settling lowers
	// it when it finds one settled before.
	withdrawn int64
	// low is set when the batch left as little as operations want to hear of.
	low bool
}

// checkBatch makes sure that the entries are the journal's next ones without a
// gap, and adds them up.
func checkBatch(b *dibs.Batch) (batchSums, error) {
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

// follows reports whether an entry is the next one after a place.
func follows(e *dibs.Entry, last dibs.Cursor) bool {
	if e.Kind == dibs.EntryOpen {
		return e.Seq == 1 && e.Epoch > last.Epoch && e.Prev == last
	}
	// Only an opening entry can be the first of a shard.
	return last != dibs.Cursor{} && e.Epoch == last.Epoch && e.Seq == last.Seq+1 && e.Seq != 0
}

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
			return nil
		}
		if e.Ref == "" || c.HasItems() && int64(len(e.Items)) != -e.Quantity {
			return fmt.Errorf("%w: the entry at %s withdraws %d with %d items and ref %q",
				dibs.ErrCorrupt, e.Cursor, -e.Quantity, len(e.Items), e.Ref)
		}
		sum.withdrawn -= e.Quantity
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
func (l *Ledger) settleBatch(ctx context.Context, s *session, b *dibs.Batch, sum *batchSums) error {
	if err := withdraw(ctx, s, b, sum); err != nil {
		return err
	}
	if err := movePosition(ctx, s, b, sum); err != nil {
		return err
	}
	if sum.grants > 0 {
		if err := l.insertClaims(ctx, s, b); err != nil {
			return err
		}
	}
	if sum.items > 0 {
		if err := l.assignItems(ctx, s, b); err != nil {
			return err
		}
	}
	taken := sum.units + sum.withdrawn
	if taken == 0 {
		return nil
	}
	n, err := s.exec(ctx, `UPDATE campaigns SET stock_total = stock_total - ?, stock_left = stock_left - ? WHERE number = ?`,
		sum.withdrawn, taken, b.Shard.Campaign)
	if err == nil && n != 1 {
		err = notFound(aCampaign, b.Shard.Campaign)
	}
	if err == nil && b.Campaign.LowStock > 0 {
		sum.low, err = l.noticeLow(ctx, s, b.Shard.Campaign)
	}
	return err
}

// movePosition moves the shard's committed position and sums in one
// compare-and-set: a second settler, or one that read its batch before the shard
// was loaded anew, changes nothing.
func movePosition(ctx context.Context, s *session, b *dibs.Batch, sum *batchSums) error {
	pending, confirmed := sum.units, int64(0)
	if b.Campaign.InitialStatus() == dibs.Confirmed {
		pending, confirmed = confirmed, pending
	}
	n, err := s.exec(ctx, `UPDATE positions SET pos_epoch = ?, pos_seq = ?, stock = stock - ?, stock_left = stock_left - ?,
		pending = pending + ?, confirmed = confirmed + ?
		WHERE campaign = ? AND shard = ? AND pos_epoch = ? AND pos_seq = ? AND epoch = ?`,
		b.To.Epoch, b.To.Seq, sum.withdrawn, sum.units+sum.withdrawn, pending, confirmed,
		b.Shard.Campaign, b.Shard.Shard, b.From.Epoch, b.From.Seq, b.Fence)
	if err == nil && n != 1 {
		err = passed(ctx, s, b)
	}
	return err
}

// withdraw records the withdrawals of the batch. One that was settled before,
// by its ref, counts no more.
func withdraw(ctx context.Context, s *session, b *dibs.Batch, sum *batchSums) error {
	locked := s.d.forUpdate == ""
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Kind != dibs.EntryAdjust || e.Quantity >= 0 {
			continue
		}
		if !locked {
			// The shard's row before all others: who settles the same waits here.
			var stock int64
			if err := s.row(ctx, `SELECT stock FROM positions WHERE campaign = ? AND shard = ?`+s.d.forUpdate,
				[]any{b.Shard.Campaign, b.Shard.Shard}, &stock); err != nil {
				return err
			}
			locked = true
		}
		n, err := s.insertNew(ctx, `INSERT INTO adjustments (campaign, shard, ref, delta, why, at) VALUES (?,?,?,?,?,?)`,
			b.Shard.Campaign, b.Shard.Shard, e.Ref, e.Quantity, "", e.At)
		if err != nil {
			return err
		}
		if n == 0 {
			sum.withdrawn += e.Quantity
			continue
		}
		if err := withdrawItems(ctx, s, b.Shard, e); err != nil {
			return err
		}
	}
	return nil
}
