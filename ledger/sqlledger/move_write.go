package sqlledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// write writes what the moves have changed.
func (all lockedClaims) write(ctx context.Context, s *sqldb.Session) error {
	changed := slices.DeleteFunc(all.sorted(), func(v *lockedClaim) bool { return len(v.claim.Events) == v.steps })
	if len(changed) == 0 {
		return nil
	}
	// Rows of claims first, whose compare-and-set finds out whether the rest
	// may be written; then the rows of shards and campaigns, in the order of
	// locks.
	for _, write := range []func(context.Context, *sqldb.Session, []*lockedClaim) error{
		updateClaims, insertEvents, writePayments, freeItems, moveSums,
	} {
		if err := write(ctx, s, changed); err != nil {
			return err
		}
	}
	return appendFeed(ctx, s, stepRows(changed))
}

// change is what claims have in common that one statement changes alike. Claims
// that are alike in all of it are updated by one statement.
type change struct {
	shard                 dibs.ShardID
	epoch                 uint16
	from, to              dibs.Status
	stepsBefore, stepsNow int
	restocked             bool
}

// updateClaims moves the rows by compare-and-set: a row that is not as it was
// read any more undoes the transaction. The condition has status and number of
// steps as they were read: rows are locked, so that only a bug, or a change by
// hand, can make it fail.
func updateClaims(ctx context.Context, s *sqldb.Session, changed []*lockedClaim) error {
	// Most moves of a transaction are alike: a few statements move thousands of
	// claims.
	alike := make(map[change]*run)
	var order []change
	for _, v := range changed {
		p := v.claim.Position
		key := change{
			shard: p.ShardID, epoch: p.Epoch, from: v.status, to: v.claim.Status,
			stepsBefore: v.steps, stepsNow: len(v.claim.Events), restocked: v.claim.Restocked,
		}
		r := alike[key]
		if r == nil {
			r = &run{shard: p.ShardID, epoch: p.Epoch}
			alike[key] = r
			order = append(order, key)
		}
		r.seqs = append(r.seqs, int64(p.Seq))
	}
	for _, key := range order {
		r := alike[key]
		moved := int64(0)
		if err := r.each(func(seqs []any) error {
			where, args := r.condition(s, "claims", "epoch", "seq", seqs,
				int64(key.to), flag(key.restocked), key.stepsNow, int64(key.from), key.stepsBefore)
			n, err := s.Exec(ctx, `UPDATE claims SET status = ?, restocked = ?, steps = ? WHERE status = ? AND steps = ? AND `+where, args...)
			moved += n
			return err
		}); err != nil {
			return err
		}
		if moved != int64(len(r.seqs)) {
			return fmt.Errorf("%w: of %d claims to move, %d were as they had been", dibs.ErrConflict, len(r.seqs), moved)
		}
	}
	return nil
}

// insertEvents writes the events that are new. Events are numbered within their
// claim, and never change.
func insertEvents(ctx context.Context, s *sqldb.Session, changed []*lockedClaim) error {
	var args []any
	for _, v := range changed {
		p := v.claim.Position
		for i := v.steps; i < len(v.claim.Events); i++ {
			e := &v.claim.Events[i]
			facts := []byte{}
			if e.EventFacts != (dibs.EventFacts{}) {
				var err error
				if facts, err = json.Marshal(e.EventFacts); err != nil {
					return fmt.Errorf("write an event's facts: %w", err)
				}
			}
			args = append(args, int64(p.Campaign), int64(p.Shard), int64(p.Epoch), int64(p.Seq),
				int64(e.N), string(e.Step), int64(e.Status), e.At.UnixMilli(), facts)
		}
	}
	return s.InsertRows(ctx, `INSERT INTO claim_events (campaign, shard, epoch, seq, n, step, status, at, facts) VALUES `,
		args, 9)
}

// writePayments writes payments that are new, and what was refunded of others.
// A payment is written once. Only what was refunded of it, and whether it has
// to go back, change later.
func writePayments(ctx context.Context, s *sqldb.Session, changed []*lockedClaim) error {
	var fresh []any
	for _, v := range changed {
		p, now := v.claim.Position, v.claim.Payment
		switch {
		case now == nil || v.payment != nil && *v.payment == *now:
		case v.payment == nil:
			fresh = append(fresh, int64(p.Campaign), int64(p.Shard), int64(p.Epoch), int64(p.Seq),
				now.Ref, now.Amount.Amount, now.Amount.Currency, now.Refunded, flag(now.Due), now.At.UnixMilli())
		default:
			other := fmt.Errorf("%w: the payment of the claim %s is not as its events tell", dibs.ErrCorrupt, p)
			if err := s.DoOne(ctx, other, `UPDATE payments SET refunded = ?, due = ?
				WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ? AND refunded = ?`,
				now.Refunded, flag(now.Due), p.Campaign, p.Shard, p.Epoch, p.Seq, v.payment.Refunded); err != nil {
				return err
			}
		}
	}
	return s.InsertRows(ctx, `INSERT INTO payments (campaign, shard, epoch, seq, ref, amount, currency, refunded, due, at) VALUES `, fresh, 10)
}

// justGivenBack lists the claims whose stock comes back by this change.
func justGivenBack(changed []*lockedClaim) []*lockedClaim {
	return slices.DeleteFunc(slices.Clone(changed), func(v *lockedClaim) bool {
		before := v.status == dibs.Released || v.restocked
		return before || !givenBack(&v.claim)
	})
}

// freeItems takes the items of claims whose stock comes back from them. Each
// item becomes free for the engine by the command that moveSums writes.
func freeItems(ctx context.Context, s *sqldb.Session, changed []*lockedClaim) error {
	due := make(map[dibs.ShardID]int64)
	var at []dibs.Position
	kinds := make(stockKinds)
	for _, v := range justGivenBack(changed) {
		p := v.claim.Position
		kind, err := kinds.of(ctx, s, p.Campaign)
		if err != nil {
			return err
		}
		if kind != dibs.Units {
			at = append(at, p)
			due[p.ShardID] += v.claim.Quantity
		}
	}
	if err := eachRun(at, func(r *run, seqs []any) error {
		where, args := r.condition(s, "items", "claim_epoch", "claim_seq", seqs)
		n, err := s.Exec(ctx, `UPDATE items`+formsFor(s).byClaim+` SET claim_epoch = NULL, claim_seq = NULL WHERE `+where, args...)
		due[r.shard] -= n
		return err
	}); err != nil {
		return err
	}
	// Each unit of a campaign of items has an item. A claim without them would
	// leave a unit in the sums that no user can be given.
	for shard, missing := range due {
		if missing != 0 {
			return fmt.Errorf("%w: %d items of claims of shard %s are not theirs", dibs.ErrCorrupt, missing, shard)
		}
	}
	return nil
}

// sums are by how much a shard's row changes, in units.
type sums struct {
	// byStatus begins with Released.
	byStatus [4]int64
	// back is the stock that comes back; releases are the claims that it comes
	// from, by epoch and seq.
	back     int64
	releases [][2]uint32
}

// moveSums moves the sums of shards and campaigns, and writes the engine's
// commands. A shard's row is locked from then on, so that its epoch stays what
// the command says.
func moveSums(ctx context.Context, s *sqldb.Session, changed []*lockedClaim) error {
	byShard := make(map[dibs.ShardID]*sums)
	var order []dibs.ShardID
	of := func(id dibs.ShardID) *sums {
		if byShard[id] == nil {
			byShard[id] = &sums{}
			order = append(order, id)
		}
		return byShard[id]
	}
	for _, v := range changed {
		n := of(v.claim.Position.ShardID)
		n.byStatus[v.status-dibs.Released] -= v.claim.Quantity
		n.byStatus[v.claim.Status-dibs.Released] += v.claim.Quantity
	}
	for _, v := range justGivenBack(changed) {
		p := v.claim.Position
		n := of(p.ShardID)
		n.back += v.claim.Quantity
		n.releases = append(n.releases, [2]uint32{uint32(p.Epoch), p.Seq})
	}
	for _, id := range order {
		if err := byShard[id].write(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}

// write moves the sums of one shard, of its campaign, and of the product of
// regular orders.
func (n *sums) write(ctx context.Context, s *sqldb.Session, id dibs.ShardID) error {
	product := ""
	if n.back > 0 {
		var state dibs.State
		if err := s.Row(ctx, `SELECT state, product_id FROM campaigns WHERE number = ?`, []any{id.Campaign}, &state, &product); err != nil {
			return err
		}
		if state != dibs.RegularState {
			product = ""
		} else {
			// No engine holds regular orders.
			n.releases = nil
		}
	}
	if err := n.writeShard(ctx, s, id); err != nil || n.back == 0 {
		return err
	}
	err := s.Do(ctx, `UPDATE campaigns SET stock_left = stock_left + ? WHERE number = ?`, n.back, id.Campaign)
	if err == nil && product != "" {
		err = s.Do(ctx, `UPDATE products SET stock_left = stock_left + ? WHERE id = ?`, n.back, product)
	}
	if err == nil {
		err = clearLow(ctx, s, id.Campaign)
	}
	return err
}

// releasesPerCommand bounds a command, which is sent again as a whole after a
// failure.
const releasesPerCommand = 500

// writeShard moves the shard's own sums and writes the engine's commands, each
// with the epoch that the row has under this lock: the engine refuses a command
// of an older epoch, whose effect a load has counted.
func (n *sums) writeShard(ctx context.Context, s *sqldb.Session, id dibs.ShardID) error {
	if n.byStatus == [4]int64{} && n.back == 0 {
		return nil
	}
	err := s.DoOne(ctx, notFound(aShard, id), `UPDATE positions
		SET released = released + ?, pending = pending + ?, confirmed = confirmed + ?, refunded = refunded + ?, stock_left = stock_left + ? WHERE campaign = ? AND shard = ?`,
		n.byStatus[0], n.byStatus[1], n.byStatus[2], n.byStatus[3], n.back, id.Campaign, id.Shard)
	if err != nil || len(n.releases) == 0 {
		return err
	}
	epoch, err := sqldb.Get[uint16](ctx, s, `SELECT epoch FROM positions WHERE campaign = ? AND shard = ?`, id.Campaign, id.Shard)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(n.releases, releasesPerCommand) {
		cmd := command{Campaign: id.Campaign, Shard: id.Shard, Epoch: epoch, Releases: part}
		if err := cmd.insert(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// stepRows are the rows for the steps that claims have just made.
func stepRows(changed []*lockedClaim) (rows []feedRow) {
	var steps []stepRef
	var at int64
	add := func() {
		if len(steps) > 0 {
			rows, steps = append(rows, feedRow{feedSteps, at, steps}), nil
		}
	}
	for _, v := range changed {
		p := v.claim.Position
		for i := v.steps; i < len(v.claim.Events); i++ {
			e := &v.claim.Events[i]
			at = e.At.UnixMilli()
			steps = append(steps, stepRef{p.Campaign, uint32(p.Shard), uint32(p.Epoch), p.Seq, uint32(e.N)})
			if len(steps) == feedRowMost {
				add()
			}
		}
	}
	add()
	return rows
}
