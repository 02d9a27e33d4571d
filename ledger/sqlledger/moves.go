package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// lockedClaim is a claim that a transaction has locked and may move.
type lockedClaim struct {
	claim dibs.Claim
	// status, restocked, steps and payment are as the rows say: the UPDATE must
	// find them so.
	status    dibs.Status
	restocked bool
	steps     int
	payment   *dibs.Payment
}

// scanLocked reads claimColumns, and keeps beside the claim what its row says.
func scanLocked(rows *sql.Rows, v *lockedClaim) error {
	err := scanClaim(rows, &v.claim)
	v.status, v.restocked, v.steps = v.claim.Status, v.claim.Restocked, cap(v.claim.Events)
	return err
}

// lockedClaims are the claims of a transaction, by their positions.
type lockedClaims map[dibs.Position]*lockedClaim

// Move makes groups of moves, in order. Each move is decided by Move.Decide on
// the claim as it then stands. A group happens as a whole or not at all: when
// one of its moves is refused, the others' Err is ErrConflict. The result has
// the groups' shape. An error means that nothing happened, or with
// EffectUnknown that all of it may have.
func (cl *Claims) Move(ctx context.Context, groups [][]dibs.Move) ([][]dibs.Moved, error) {
	var at []dibs.Position
	items := false
	for _, group := range groups {
		for i := range group {
			at = append(at, group[i].Position)
			items = items || group[i].Campaign.HasItems()
		}
	}
	return sqldb.Result(ctx, cl.db.Write, "move claims", func(s *sqldb.Session) ([][]dibs.Moved, error) {
		moved := make([][]dibs.Moved, len(groups))
		all, err := lockClaims(ctx, s, at, items)
		if err != nil {
			return nil, err
		}
		for i, group := range groups {
			moved[i] = all.move(group)
		}
		return moved, all.write(ctx, s)
	})
}

// Expire releases up to most pending claims whose deadline is not after now,
// the longest due first, and returns how many those were. Several processes may
// call it at once: each claim expires once. It asks a reader first: most of the
// time nothing is due, and no writer is needed.
func (cl *Claims) Expire(ctx context.Context, now time.Time, most int) (int, error) {
	var due []dibs.Position
	find := func(s *sqldb.Session, lock string) (err error) {
		f := formsFor(s)
		due, err = sqldb.List(ctx, s, `SELECT campaign, shard, epoch, seq FROM claims WHERE `+f.dueAt+` ORDER BY `+f.byDue+` LIMIT ?`+lock,
			[]any{now.UnixMilli(), most}, func(rows *sql.Rows, p *dibs.Position) error {
				return rows.Scan(&p.Campaign, &p.Shard, &p.Epoch, &p.Seq)
			})
		return err
	}
	err := cl.db.Read(ctx, "look for expired claims", func(s *sqldb.Session) error { return find(s, "") })
	if err != nil || len(due) == 0 {
		return 0, err
	}
	n := 0
	err = cl.db.Write(sqldb.Long(ctx, sqldb.LongStatement), "expire claims", func(s *sqldb.Session) error {
		n = 0
		if err := find(s, s.SkipLocked); err != nil {
			return err
		}
		all, err := lockClaims(ctx, s, due, false)
		if err != nil {
			return err
		}
		for _, p := range due {
			if all.move([]dibs.Move{{Position: p, Step: dibs.StepExpire, At: now}})[0].Err == nil {
				n++
			}
		}
		return all.write(ctx, s)
	})
	return n, err
}

// lockClaims reads claims that no other transaction may change before this one
// ends, with their events, and with their items when they may have some.
func lockClaims(ctx context.Context, s *sqldb.Session, at []dibs.Position, items bool) (lockedClaims, error) {
	all := make(lockedClaims, len(at))
	var claims []*dibs.Claim
	if err := eachRun(at, func(r *run, seqs []any) error {
		statement, args := r.lock(s, seqs)
		return s.Each(ctx, statement, args, func(rows *sql.Rows) error {
			v := &lockedClaim{}
			err := scanLocked(rows, v)
			all[v.claim.Position] = v
			claims = append(claims, &v.claim)
			return err
		})
	}); err != nil {
		return nil, err
	}
	if err := applyEvents(ctx, s, claims); err != nil {
		return nil, err
	}
	if err := readNotes(ctx, s, claims); err != nil {
		return nil, err
	}
	// Deciding on a claim whose history is incomplete could refund it twice.
	for p, v := range all {
		if len(v.claim.Events) != v.steps {
			return nil, fmt.Errorf("%w: the claim %s has %d events and should have %d", dibs.ErrCorrupt, p, len(v.claim.Events), v.steps)
		}
		v.payment = v.claim.Payment
	}
	if !items {
		return all, nil
	}
	return all, all.readItems(ctx, s)
}

// readItems fills in the items of locked claims, some at a time. Only their
// positions are copied: scanning must not overwrite what the moves decide on.
func (all lockedClaims) readItems(ctx context.Context, s *sqldb.Session) error {
	for part := range slices.Chunk(all.sorted(), dibs.MaxPage) {
		claims := make([]dibs.Claim, len(part))
		for i, v := range part {
			claims[i].Position = v.claim.Position
		}
		if err := readItems(ctx, s, claims); err != nil {
			return err
		}
		for i, v := range part {
			v.claim.Items = claims[i].Items
		}
	}
	return nil
}

// sorted lists the claims in the order of their positions. Rows are locked and
// written in this order, in every transaction.
func (all lockedClaims) sorted() []*lockedClaim {
	list := make([]*lockedClaim, 0, len(all))
	for _, v := range all {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *lockedClaim) int { return comparePositions(a.claim.Position, b.claim.Position) })
	return list
}

// move makes a group of moves in memory, all of them or none. Moves see what
// earlier moves of the group, and earlier groups, have done.
func (all lockedClaims) move(group []dibs.Move) []dibs.Moved {
	moved := make([]dibs.Moved, len(group))
	next := make(map[dibs.Position]dibs.Claim, len(group))
	failed := false
	// next has the group's changes until all of its moves are accepted. A claim
	// may be moved more than once.
	for i := range group {
		m, out := &group[i], &moved[i]
		v, ok := all[m.Position]
		if !ok {
			out.Err, failed = notFound(aClaim, m.Position), true
			continue
		}
		claim, ok := next[m.Position]
		if !ok {
			// Clipped, so that an event of a group that fails is not written
			// into the array of the claim as it was.
			claim = v.claim
			claim.Events = slices.Clip(claim.Events)
		}
		var e *dibs.ClaimEvent
		if e, out.Replayed, out.Err = m.Decide(&claim); out.Err != nil {
			failed = true
		}
		if e != nil {
			claim.Apply(e)
			// The items go back to the stock with the claim's units.
			if givenBack(&claim) {
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

// givenBack reports whether a claim's stock has come back.
func givenBack(c *dibs.Claim) bool { return c.Status == dibs.Released || c.Restocked }
