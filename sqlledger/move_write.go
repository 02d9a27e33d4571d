package sqlledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

// writeLives writes what the moves have changed.
func (l *Ledger) writeLives(ctx context.Context, s *session, all lives) error {
	changed := slices.DeleteFunc(all.sorted(), func(v *life) bool { return len(v.claim.Events) == v.steps })
	if len(changed) == 0 {
		return nil
	}
	for _, write := range []func(context.Context, *session, []*life) error{
		updateClaims, insertEvents, writePayments, freeItems, moveSums, tellSteps,
	} {
		if err := write(ctx, s, changed); err != nil {
			return err
		}
	}
	return nil
}

// change is what claims have in common that one statement changes alike.
type change struct {
	shard                 dibs.ShardID
	epoch                 uint16
	from, to              dibs.Status
	stepsBefore, stepsNow int
	restocked             bool
}

// updateClaims moves the rows by compare-and-set: a claim whose row is not as
// it was read any more undoes the transaction.
func updateClaims(ctx context.Context, s *session, changed []*life) error {
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
		restocked := 0
		if key.restocked {
			restocked = 1
		}
		moved := int64(0)
		if err := r.each(func(seqs []any) error {
			where, args := r.at(s.d, "claims", "epoch", "seq", seqs,
				int64(key.to), restocked, key.stepsNow, int64(key.from), key.stepsBefore)
			n, err := s.exec(ctx, `UPDATE claims SET status = ?, restocked = ?, steps = ? WHERE status = ? AND steps = ? AND `+where, args...)
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

// back lists the claims whose stock has just come back.
func back(changed []*life) []*life {
	return slices.DeleteFunc(slices.Clone(changed), func(v *life) bool {
		was := v.status == dibs.Released || v.restocked
		return was || !gone(&v.claim)
	})
}

// freeItems takes the items of claims whose stock came back from them.
func freeItems(ctx context.Context, s *session, changed []*life) error {
	due := make(map[dibs.ShardID]int64)
	var at []dibs.Position
	kinds := make(map[uint32]dibs.StockKind)
	for _, v := range back(changed) {
		p := v.claim.Position
		if _, ok := kinds[p.Campaign]; !ok {
			var kind dibs.StockKind
			if err := s.row(ctx, `SELECT stock_kind FROM campaigns WHERE number = ?`, []any{p.Campaign}, &kind); err != nil {
				return err
			}
			kinds[p.Campaign] = kind
		}
		if kinds[p.Campaign] != dibs.Units {
			at = append(at, p)
			due[p.ShardID] += v.claim.Quantity
		}
	}
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error {
			where, args := r.at(s.d, "items", "claim_epoch", "claim_seq", seqs)
			n, err := s.exec(ctx, `UPDATE items`+s.d.byClaim+` SET claim_epoch = NULL, claim_seq = NULL WHERE `+where, args...)
			due[r.shard] -= n
			return err
		}); err != nil {
			return err
		}
	}
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
	back     int64
	releases [][2]uint32
}

// moveSums moves the sums of shards and campaigns, and writes the engine's
// commands: a shard's row is held from then on, so that its epoch stays what
// the command says.
func moveSums(ctx context.Context, s *session, changed []*life) error {
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
	for _, v := range back(changed) {
		p := v.claim.Position
		n := of(p.ShardID)
		n.back += v.claim.Quantity
		n.releases = append(n.releases, [2]uint32{uint32(p.Epoch), p.Seq})
	}
	for _, id := range order {
		product := ""
		if byShard[id].back > 0 {
			var state dibs.State
			if err := s.row(ctx, `SELECT state, product_id FROM campaigns WHERE number = ?`, []any{id.Campaign}, &state, &product); err != nil {
				return err
			}
			if state != dibs.RegularState {
				product = ""
			} else {
				// No engine has to hear of regular orders.
				byShard[id].releases = nil
			}
		}
		if err := byShard[id].writeShard(ctx, s, id); err != nil {
			return err
		}
		if byShard[id].back == 0 {
			continue
		}
		if _, err := s.exec(ctx, `UPDATE campaigns SET stock_left = stock_left + ? WHERE number = ?`, byShard[id].back, id.Campaign); err != nil {
			return err
		}
		if product != "" {
			if _, err := s.exec(ctx, `UPDATE products SET stock_left = stock_left + ? WHERE id = ?`, byShard[id].back, product); err != nil {
				return err
			}
		}
		if err := noticeMore(ctx, s, id.Campaign); err != nil {
			return err
		}
	}
	return nil
}

// releasesPerCommand bounds a command: what is sent again after a failure.
const releasesPerCommand = 500

func (n *sums) writeShard(ctx context.Context, s *session, id dibs.ShardID) error {
	if n.byStatus == [4]int64{} && n.back == 0 {
		return nil
	}
	found, err := s.exec(ctx, `UPDATE positions SET released = released + ?, pending = pending + ?, confirmed = confirmed + ?,
		refunded = refunded + ?, stock_left = stock_left + ? WHERE campaign = ? AND shard = ?`,
		n.byStatus[0], n.byStatus[1], n.byStatus[2], n.byStatus[3], n.back, id.Campaign, id.Shard)
	if err == nil && found != 1 {
		err = notFound(aShard, id)
	}
	if err != nil || len(n.releases) == 0 {
		return err
	}
	var epoch uint16
	if err := s.row(ctx, `SELECT epoch FROM positions WHERE campaign = ? AND shard = ?`, []any{id.Campaign, id.Shard}, &epoch); err != nil {
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
