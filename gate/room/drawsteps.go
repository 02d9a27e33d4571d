package room

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/gate"
)

// readEvery is how often the row of a lottery is read that may change by another
// node's doing.
const readEvery = time.Second

// follow takes a lottery on, step by step, as far as it may go by now: every node
// does, and whoever is first makes the step. A step that another node makes
// meanwhile is the same one.
// An error is tried again by the next tick; nothing is half done, since a step is one
// write.
func (l *lottery) follow(ctx context.Context) {
	for {
		more, err := l.step(ctx)
		if errors.Is(err, dibs.ErrConflict) {
			// It was made elsewhere: the next one is for what is there now.
			if _, err = l.read(ctx); err == nil {
				continue
			}
		}
		if err != nil && ctx.Err() == nil {
			l.r.counts.failed.Add(1)
			l.r.log.Warn("a lottery does not go on", "campaign", l.campaign.Load().ID, "err", err)
		}
		if err != nil || !more {
			return
		}
	}
}

// step makes the step that is due, and reports whether there may be another.
//
// The order is closing, list, public value, draw, winners. Each write compares the
// row's version, so that a step which another node has made is not made again from
// older facts.
func (l *lottery) step(ctx context.Context) (more bool, err error) {
	c, now := l.campaign.Load(), l.r.cfg.Now()
	row, err := l.committed(ctx)
	if err != nil || now.Before(c.Gate.Room.RegistrationClosesAt) {
		return false, err
	}
	if row.DrawnAt.IsZero() && now.UnixMilli()-l.readMS.Load() >= readEvery.Milliseconds() {
		if row, err = l.read(ctx); err != nil {
			return false, err
		}
	}
	next := *row
	switch {
	case row.ClosedAt.IsZero():
		next.ClosedAt = now.UTC().Truncate(time.Millisecond)
	case row.ListHash == "":
		if next, err = l.listed(ctx); err != nil {
			return false, err
		}
	case row.DrawnAt.IsZero():
		if c.Gate.Room.PublicValue != "" && row.PublicValue == "" {
			return false, nil
		}
		if err := l.draw(ctx, &next); err != nil {
			return false, err
		}
		next.DrawnAt = now.UTC().Truncate(time.Millisecond)
	default:
		return false, l.loadWinners(ctx, row)
	}
	return true, l.store(ctx, &next)
}

// listed is the row with the hash of the closed list.
func (l *lottery) listed(ctx context.Context) (gate.LotteryRow, error) {
	h := NewListHasher()
	if err := l.each(ctx, func(_ *gate.LotteryEntry, sum Sum) error { return h.Add(sum) }); err != nil {
		return gate.LotteryRow{}, err
	}
	// Entries are counted as they come; that the list has as many says that none
	// came after the closing.
	row, err := l.read(ctx)
	if err != nil {
		return gate.LotteryRow{}, err
	}
	if row.Entries != h.Len() {
		return gate.LotteryRow{}, fmt.Errorf("%w: lottery %d has %d entries, %d were counted", dibs.ErrCorrupt, row.Campaign, h.Len(), row.Entries)
	}
	next := *row
	next.ListHash = h.Sum().String()
	return next, nil
}

// draw draws the winners of a closed list.
// An entry that was added or lost since the closing changes the hash: nothing is
// drawn then, and an administrator has to look.
func (l *lottery) draw(ctx context.Context, row *gate.LotteryRow) error {
	seed, err := ParseSum(row.Seed)
	list, listErr := ParseSum(row.ListHash)
	if err := errors.Join(err, listErr); err != nil {
		return fmt.Errorf("%w: the lottery of campaign %d: %w", dibs.ErrCorrupt, row.Campaign, err)
	}
	key := DrawKey(seed, list, row.PublicValue)
	tickets, hash := make([]Sum, 0, row.Entries), NewListHasher()
	if err := l.each(ctx, func(_ *gate.LotteryEntry, entry Sum) error {
		tickets = append(tickets, TicketOf(key, entry))
		return hash.Add(entry)
	}); err != nil {
		return err
	}
	if hash.Sum() != list {
		return fmt.Errorf("%w: the entries of lottery %d are not those of its list's hash", dibs.ErrCorrupt, row.Campaign)
	}
	row.Cutoff = Cutoff(tickets, row.Winners).String()
	return nil
}

// loadWinners has this node know the winners, so that claims need not ask.
// Each node reads all entries once. Until then its claims are told to wait.
func (l *lottery) loadWinners(ctx context.Context, row *gate.LotteryRow) error {
	if l.winners.Load() != nil {
		return nil
	}
	d, err := drawOf(row)
	if err != nil {
		return err
	}
	winners := make(map[string]struct{}, min(row.Winners, row.Entries))
	if err := l.each(ctx, func(e *gate.LotteryEntry, entry Sum) error {
		if Wins(TicketOf(d.key, entry), d.cutoff) {
			winners[e.UserID] = struct{}{}
		}
		return nil
	}); err != nil {
		return err
	}
	l.winners.Store(&winners)
	return nil
}

// passLottery passes winners, whether they carry their admission or not.
func (r *Rooms) passLottery(c *dibs.Campaign, user string) (dibs.Result, bool) {
	wait := dibs.Result{Outcome: dibs.Waiting, Detail: notDrawn, RetryAfter: time.Second}
	v, ok := r.lotteries.Load(c.Number)
	if !ok {
		return wait, false
	}
	winners := v.(*lottery).winners.Load()
	if winners == nil {
		return wait, false
	}
	if _, won := (*winners)[user]; won {
		return dibs.Result{}, true
	}
	return dibs.Result{Outcome: dibs.NotEligible, Detail: didNotWin}, false
}
