package sqlledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
)

// run is claims of one epoch of a shard.
type run struct {
	shard dibs.ShardID
	epoch uint16
	seqs  []any
}

// runsOf sorts places and divides them into runs; one that comes twice is
// taken once.
func runsOf(at []dibs.Position) []run {
	at = slices.Clone(at)
	slices.SortFunc(at, comparePositions)
	var runs []run
	for _, p := range slices.Compact(at) {
		last := len(runs) - 1
		if last < 0 || runs[last].shard != p.ShardID || runs[last].epoch != p.Epoch {
			runs, last = append(runs, run{shard: p.ShardID, epoch: p.Epoch}), last+1
		}
		runs[last].seqs = append(runs[last].seqs, int64(p.Seq))
	}
	return runs
}

// at is the condition that a row is of one of some claims, by the names of its
// table and of the columns of their places, and its arguments after those that
// come first.
func (r *run) at(d *dialect, table, epoch, seq string, seqs []any, first ...any) (condition string, args []any) {
	if d.seqs == nil {
		return "campaign = ? AND shard = ? AND " + epoch + " = ? AND " + seq + " IN (" + repeat("?", len(seqs)) + ")", r.args(seqs, first...)
	}
	return d.seqs(table, epoch, seq), append(r.args(nil, first...), slices.Compact(columnOf[int64](seqs, 1)))
}

// lock is the statement that reads some claims and keeps others from changing
// them, and its arguments.
func (r *run) lock(d *dialect, seqs []any) (statement string, args []any) {
	if d.lockSeqs == nil {
		where, args := r.at(d, "claims", "epoch", "seq", seqs)
		return "SELECT " + claimColumns + " FROM claims WHERE " + where + d.forUpdate, args
	}
	return d.lockSeqs(claimColumns), append(r.args(nil), slices.Compact(columnOf[int64](seqs, 1)))
}

// runLength is the most claims that one statement names.
const runLength = 512

// each calls f with some of the run's places at a time. Lists are filled up to
// few lengths with their last place, so that few texts are prepared.
func (r *run) each(f func(seqs []any) error) error {
	for part := range slices.Chunk(r.seqs, runLength) {
		n := 1
		for n < len(part) {
			n *= 2
		}
		seqs := slices.Clone(part)
		for len(seqs) < n {
			seqs = append(seqs, part[len(part)-1])
		}
		if err := f(seqs); err != nil {
			return err
		}
	}
	return nil
}

// args are the arguments of a statement for some of the run's places, after
// those that come first.
func (r *run) args(seqs []any, first ...any) []any {
	return append(append(first, int64(r.shard.Campaign), int64(r.shard.Shard), int64(r.epoch)), seqs...)
}

// eventsOf brings claims up to their events, as far as scanning them has left
// room for some.
func eventsOf(ctx context.Context, s *session, claims []*dibs.Claim) error {
	byPlace := make(map[dibs.Position]*dibs.Claim)
	var at []dibs.Position
	for _, c := range claims {
		if cap(c.Events) > 0 {
			byPlace[c.Position] = c
			at = append(at, c.Position)
		}
	}
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error {
			where, args := r.at(s.d, "claim_events", "epoch", "seq", seqs)
			return s.each(ctx, `SELECT seq, n, step, status, at, facts FROM claim_events WHERE `+where+` ORDER BY seq, n`,
				args, func(rows *sql.Rows) error {
					e, seq, err := scanEvent(rows)
					if err != nil {
						return err
					}
					at := dibs.Position{ShardID: r.shard, Cursor: dibs.Cursor{Epoch: r.epoch, Seq: seq}}
					byPlace[at].Apply(&e)
					return nil
				})
		}); err != nil {
			return err
		}
	}
	return nil
}

func scanEvent(rows *sql.Rows) (e dibs.ClaimEvent, seq uint32, err error) {
	var at int64
	var facts []byte
	if err = rows.Scan(&seq, &e.N, &e.Step, &e.Status, &at, &facts); err != nil {
		return e, seq, err
	}
	e.At = fromMS(at)
	if len(facts) > 0 {
		if err = json.Unmarshal(facts, &e.EventFacts); err != nil {
			err = fmt.Errorf("%w: an event's facts: %w", dibs.ErrCorrupt, err)
		}
	}
	return e, seq, err
}

// pointers lists the addresses of claims.
func pointers(claims []dibs.Claim) []*dibs.Claim {
	list := make([]*dibs.Claim, len(claims))
	for i := range claims {
		list[i] = &claims[i]
	}
	return list
}

// eventRows is the most events that one statement writes.
const eventRows = 256

// insertEvents writes the events that are new.
func insertEvents(ctx context.Context, s *session, changed []*life) error {
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
	return insertRows(ctx, s, `INSERT INTO claim_events (campaign, shard, epoch, seq, n, step, status, at, facts) VALUES `,
		args, 9)
}

// insertRows writes rows of width arguments each.
func insertRows(ctx context.Context, s *session, statement string, args []any, width int) error {
	row := "(" + repeat("?", width) + ")"
	for len(args) > 0 {
		n := chunk(len(args)/width, eventRows)
		if _, err := s.exec(ctx, statement+repeat(row, n), args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// writePayments writes payments that are new, and what of others went back.
func writePayments(ctx context.Context, s *session, changed []*life) error {
	var fresh []any
	for _, v := range changed {
		p, now := v.claim.Position, v.claim.Payment
		due := 0
		if now != nil && now.Due {
			due = 1
		}
		switch {
		case now == nil || v.payment != nil && *v.payment == *now:
		case v.payment == nil:
			fresh = append(fresh, int64(p.Campaign), int64(p.Shard), int64(p.Epoch), int64(p.Seq),
				now.Ref, now.Amount.Amount, now.Amount.Currency, now.Refunded, due, now.At.UnixMilli())
		default:
			n, err := s.exec(ctx, `UPDATE payments SET refunded = ?, due = ?
				WHERE campaign = ? AND shard = ? AND epoch = ? AND seq = ? AND refunded = ?`,
				now.Refunded, due, p.Campaign, p.Shard, p.Epoch, p.Seq, v.payment.Refunded)
			if err == nil && n != 1 {
				err = fmt.Errorf("%w: the payment of the claim %s is not as its events tell", dibs.ErrCorrupt, p)
			}
			if err != nil {
				return err
			}
		}
	}
	return insertRows(ctx, s, `INSERT INTO payments (campaign, shard, epoch, seq, ref, amount, currency, refunded, due, at) VALUES `, fresh, 10)
}
