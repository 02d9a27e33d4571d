package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// partlyDue are the rows that an index of some rows has.
const partlyDue = "status = 0 AND pay_by > 0 AND pay_by <= ?"

// life is a claim on its way through a transaction.
type life struct {
	claim dibs.Claim
	// The claim as it was read: who changes it must find it so.
	status    dibs.Status
	restocked bool
	steps     int
	payment   *dibs.Payment
}

// lives are the claims of a transaction, by their positions.
type lives map[dibs.Position]*life

// Move implements dibs.Lives. The claims are locked first, in the order of
// their positions, then the shards' rows, then the campaigns': settling, which
// has claims of its own, goes the same way.
func (l *Ledger) Move(ctx context.Context, groups [][]dibs.Move) ([][]dibs.Moved, error) {
	var at []dibs.Position
	items := false
	for _, group := range groups {
		for i := range group {
			at = append(at, group[i].Position)
			items = items || group[i].Campaign.HasItems()
		}
	}
	var moved [][]dibs.Moved
	err := l.write(ctx, "move claims", func(s *session) error {
		moved = make([][]dibs.Moved, len(groups))
		all, err := l.lock(ctx, s, at, items)
		if err != nil {
			return err
		}
		for i, group := range groups {
			moved[i] = all.move(group)
		}
		return l.writeLives(ctx, s, all)
	})
	if err != nil {
		return nil, err
	}
	return moved, nil
}

// Expire implements dibs.Lives. It asks a reader first: most of the time
// nothing is due, and nobody has to wait for that.
func (l *Ledger) Expire(ctx context.Context, now time.Time, max int) (int, error) {
	var due []dibs.Position
	find := func(s *session, lock string) error {
		due = nil
		return s.each(ctx, `SELECT campaign, shard, epoch, seq FROM claims WHERE `+l.d.dueAt+` ORDER BY `+l.d.byDue+` LIMIT ?`+lock,
			[]any{now.UnixMilli(), max}, func(rows *sql.Rows) error {
				var p dibs.Position
				err := rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq)
				due = append(due, p)
				return err
			})
	}
	if err := l.read(ctx, "look for expired claims", func(s *session) error { return find(s, "") }); err != nil || len(due) == 0 {
		return 0, err
	}
	n := 0
	err := l.write(long(ctx, longStatement), "expire claims", func(s *session) error {
		n = 0
		if err := find(s, l.d.skipLocked); err != nil {
			return err
		}
		all, err := l.lock(ctx, s, due, false)
		if err != nil {
			return err
		}
		for _, p := range due {
			if all.move([]dibs.Move{{Position: p, Step: dibs.StepExpire, At: now}})[0].Err == nil {
				n++
			}
		}
		return l.writeLives(ctx, s, all)
	})
	return n, err
}

// lock reads claims that nobody else may change before the transaction ends,
// with their events, and their items when they may have some.
func (l *Ledger) lock(ctx context.Context, s *session, at []dibs.Position, items bool) (lives, error) {
	all := make(lives, len(at))
	var claims []*dibs.Claim
	for _, r := range runsOf(at) {
		if err := r.each(func(seqs []any) error {
			statement, args := r.lock(s.d, seqs)
			return s.each(ctx, statement, args, func(rows *sql.Rows) error {
				v := &life{}
				if err := scanClaim(rows, &v.claim); err != nil {
					return err
				}
				v.status, v.restocked, v.steps = v.claim.Status, v.claim.Restocked, cap(v.claim.Events)
				all[v.claim.Position] = v
				claims = append(claims, &v.claim)
				return nil
			})
		}); err != nil {
			return nil, err
		}
	}
	if err := eventsOf(ctx, s, claims); err != nil {
		return nil, err
	}
	for p, v := range all {
		if len(v.claim.Events) != v.steps {
			return nil, fmt.Errorf("%w: the claim %s has %d events and should have %d", dibs.ErrCorrupt, p, len(v.claim.Events), v.steps)
		}
		v.payment = v.claim.Payment
	}
	if !items {
		return all, nil
	}
	return all, l.itemsOfLives(ctx, s, all)
}

// itemsOfLives fills in the items of locked claims, some at a time.
func (l *Ledger) itemsOfLives(ctx context.Context, s *session, all lives) error {
	for batch := range slices.Chunk(all.sorted(), dibs.MaxPage) {
		claims := make([]dibs.Claim, len(batch))
		for i, v := range batch {
			claims[i].Position = v.claim.Position
		}
		if err := l.itemsOf(ctx, s, claims); err != nil {
			return err
		}
		for i, v := range batch {
			v.claim.Items = claims[i].Items
		}
	}
	return nil
}

// sorted lists the claims in the order of their positions.
func (all lives) sorted() []*life {
	list := make([]*life, 0, len(all))
	for _, v := range all {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *life) int { return comparePositions(a.claim.Position, b.claim.Position) })
	return list
}

func comparePositions(a, b dibs.Position) int {
	return cmp.Or(cmp.Compare(a.Campaign, b.Campaign), cmp.Compare(a.Shard, b.Shard),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Seq, b.Seq))
}

// move makes a group of moves in memory, all of them or none.
func (all lives) move(group []dibs.Move) []dibs.Moved {
	moved := make([]dibs.Moved, len(group))
	next := make(map[dibs.Position]dibs.Claim, len(group))
	failed := false
	for i := range group {
		m, out := &group[i], &moved[i]
		v, ok := all[m.Position]
		if !ok {
			out.Err, failed = notFound(aClaim, m.Position), true
			continue
		}
		claim, ok := next[m.Position]
		if !ok {
			claim = v.claim
			claim.Events = slices.Clip(claim.Events)
		}
		var e *dibs.ClaimEvent
		if e, out.Replayed, out.Err = m.Decide(&claim); out.Err != nil {
			failed = true
		}
		if e != nil {
			claim.Apply(e)
			if gone(&claim) {
				claim.Items = nil
			}
		}
		next[m.Position] = claim
		out.Claim = &claim
	}
	if !failed {
		for at, claim := range next {
			all[at].claim = claim
		}
		return moved
	}
	for i := range moved {
		if v := all[group[i].Position]; v != nil {
			as := v.claim
			moved[i].Claim = &as
		}
		if moved[i].Err == nil {
			moved[i].Err = fmt.Errorf("%w: another move of its group was refused", dibs.ErrConflict)
		}
	}
	return moved
}

// gone reports whether a claim's stock has come back.
func gone(c *dibs.Claim) bool { return c.Status == dibs.Released || c.Restocked }
