package redisengine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// errFenced says that not finding a batch is not final: another server may have had
// more.
var errFenced = errors.New("redisengine: Redis may have lost history, and the shard is not open again yet")

// resolve finds out what became of a batch whose answer is lost, before anyone
// is told. Grants are in the journal under the batch's token. Once its deadline has
// passed, a claim that is not there was not granted and never will be, so it can be
// decided again. Only when Redis does not say in time are callers told that the effect
// is unknown.
func (b *batch) resolve(cause error) {
	p := b.lane.p
	p.stats.Lost.Add(1)
	p.log.Warn("an answer is lost", "shard", b.lane.id.String(), "claims", len(b.waiters), "err", cause)
	var granted *format.Element
	err := b.lane.insist(func(ctx context.Context) (err error) {
		granted, err = b.search(ctx)
		return err
	})
	if err != nil {
		b.fail(dibs.Unavail(dibs.EffectUnknown, errors.Join(cause, err)))
		return
	}
	b.settle(granted, cause)
}

// search looks for the batch in the journal. It returns an error as long as
// that is not final.
func (b *batch) search(ctx context.Context) (*format.Element, error) {
	l := b.lane
	// The clock is read first: what comes after is read when the deadline is over.
	nowMS, epoch, err := l.standing(ctx)
	if err != nil {
		return nil, err
	}
	end, err := l.journalEnd(ctx)
	if err != nil {
		return nil, err
	}
	reached := b.after
	for s, err := range l.elements(ctx, b.after, format.MaxBatch) {
		if err != nil {
			return nil, err
		}
		if s.Token == b.token {
			return s, nil
		}
		if s.Salvaged {
			return nil, fmt.Errorf("%w: what ends at %s cannot be read", errUnsure, s.Last)
		}
		for i := range s.Entries {
			if reached.Before(s.Entries[i].Cursor) {
				if !dibs.Continues(reached, &s.Entries[i]) {
					return nil, fmt.Errorf("%w: %s follows %s", errUnsure, s.Entries[i].Cursor, reached)
				}
				reached = s.Entries[i].Cursor
			}
		}
	}
	switch {
	case reached.Before(end) || end.Before(b.after):
		return nil, fmt.Errorf("%w: it ends at %s, and was read up to %s", errUnsure, end, reached)
	case nowMS <= b.deadlineMS:
		return nil, errStillOpen
	}
	// A claim that is not there was lost, perhaps, with the history of an earlier
	// server, and may be in the ledger. Where the shard is open in one epoch from
	// before the search until after it, one server has answered all of it, and
	// its journal continues what the ledger has.
	_, after, err := l.standing(ctx)
	if err == nil && (epoch == 0 || epoch != after) {
		err = errFenced
	}
	return nil, err
}

// settle answers the claims that were granted and has the others decided
// again. granted is nil when the batch granted nothing.
func (b *batch) settle(granted *format.Element, cause error) {
	var entries []dibs.Entry
	if granted != nil {
		entries = granted.Entries
		b.lane.advance(granted.Last)
		b.lane.p.signal()
	}
	// Callers can leave as long as the batch is not done: it is when all is
	// known that they wait for.
	type end struct {
		t   *waiter
		d   *dibs.Decision
		err error
	}
	ends := make([]end, 0, len(entries))
	rest := make([]*waiter, 0, len(b.waiters))
	var silent error
	for _, t := range b.waiters {
		// Grants stand in the order of their claims.
		if len(entries) > 0 && entries[0].UserID == t.req.UserID && entries[0].Key == t.req.Key &&
			entries[0].Quantity == t.req.Quantity && !t.req.OnlyRepeat {
			d, err := b.found(&entries[0], silent)
			if err != nil {
				silent = err
			}
			ends = append(ends, end{t, d, err})
			entries = entries[1:]
			continue
		}
		rest = append(rest, t)
	}
	b.lane.done(b)
	for _, e := range ends {
		if e.err != nil {
			e.t.fail(e.err)
			continue
		}
		e.t.find(e.d)
	}
	none := dibs.Unavail(dibs.EffectNone, cause)
	if _, answered := errors.AsType[*conn.AnsweredError](cause); answered {
		// Redis refuses this script; it would again.
		for _, t := range rest {
			t.fail(none)
		}
		return
	}
	b.retry(rest, none)
}

// found is the decision that a journal entry records. silent is why Redis did not
// tell the items of a grant before: it is not asked again then.
func (b *batch) found(en *dibs.Entry, silent error) (*dibs.Decision, error) {
	l := b.lane
	g := dibs.Grant{
		Position: dibs.Position{ShardID: l.id, Cursor: en.Cursor}, UserID: en.UserID, Quantity: en.Quantity, At: en.At, PayBy: en.PayBy,
	}
	if len(en.Items) == 0 {
		return &dibs.Decision{Outcome: dibs.Granted, Grant: g}, nil
	}
	if silent != nil {
		return nil, silent
	}
	// The journal has the items' numbers, the holdings their values.
	err := l.insist(func(ctx context.Context) error {
		held, ok, err := l.find(ctx, g.Cursor)
		if err == nil && !ok {
			return errUnsure
		}
		g.Items = held.Items
		return err
	})
	if err != nil {
		return nil, dibs.Unavail(dibs.EffectUnknown, err)
	}
	return &dibs.Decision{Outcome: dibs.Granted, Grant: g}, nil
}
