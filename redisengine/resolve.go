package redisengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// resolvePauseMin and resolvePauseMax bound the pause between two attempts to
	// find out what became of a batch.
	resolvePauseMin = 5 * time.Millisecond
	resolvePauseMax = 100 * time.Millisecond
)

var (
	errStillOpen = errors.New("redisengine: the batch may be decided still")
	errUnsure    = errors.New("redisengine: the journal does not reach back to the batch")
	errFenced    = errors.New("redisengine: Redis may have lost history, and the shard is not open again yet")
)

// resolve finds out what became of a batch whose answer is lost, before anyone
// is told. What was granted is in the journal under the batch's token. When
// its deadline has passed, what is not there was not granted and never will
// be, so that it can be decided again. Only when Redis does not say in time
// are callers told that the effect is unknown.
func (b *batch) resolve(cause error) {
	e := b.lane.e
	e.work.Lost.Add(1)
	e.log.Warn("an answer is lost", "shard", b.lane.id.String(), "claims", len(b.tickets), "err", cause)
	var granted *streamEntry
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

// insist tries until it succeeds, it is pointless, patience is over, or the
// engine closes.
func (l *lane) insist(try func(ctx context.Context) error) error {
	since, pause := time.Now(), resolvePauseMin
	for {
		ctx, cancel := context.WithTimeout(context.Background(), l.e.cfg.Deadline)
		err := try(ctx)
		cancel()
		if err == nil || errors.Is(err, errUnsure) || time.Since(since) > l.e.cfg.Patience {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.e.stop:
			<-timer.C
			// Only a deadline that will pass is waited for still.
			if !errors.Is(err, errStillOpen) {
				return err
			}
		}
		pause = min(2*pause, resolvePauseMax)
	}
}

// search looks for the batch in the journal. It returns an error as long as
// that is not final.
func (b *batch) search(ctx context.Context) (*streamEntry, error) {
	l := b.lane
	// The clock is read first: what comes after is read when the deadline is over.
	nowMS, epoch, err := l.standing(ctx)
	if err != nil {
		return nil, err
	}
	end, err := l.e.JournalEnd(ctx, l.id)
	if err != nil {
		return nil, err
	}
	reached := b.after
	for s, err := range l.e.elements(ctx, l.id, b.after, maxBatch) {
		if err != nil {
			return nil, err
		}
		if s.token == b.token {
			return s, nil
		}
		if s.mended {
			return nil, fmt.Errorf("%w: what ends at %s cannot be read", errUnsure, s.last)
		}
		for i := range s.entries {
			if reached.Before(s.entries[i].Cursor) {
				if !dibs.Continues(reached, &s.entries[i]) {
					return nil, fmt.Errorf("%w: %s follows %s", errUnsure, s.entries[i].Cursor, reached)
				}
				reached = s.entries[i].Cursor
			}
		}
	}
	switch {
	case reached.Before(end) || end.Before(b.after):
		return nil, fmt.Errorf("%w: it ends at %s, and was read up to %s", errUnsure, end, reached)
	case nowMS <= b.deadlineMS:
		return nil, errStillOpen
	}
	// What is not there was lost, perhaps, with the history that a server before
	// had: it may be in the ledger. Where the shard is open in one epoch from
	// before the search until after it, one server has answered all of it, and
	// its journal continues what the ledger has.
	_, after, err := l.standing(ctx)
	if err == nil && (epoch == 0 || epoch != after) {
		err = errFenced
	}
	return nil, err
}

// standing asks Redis for its time and the epoch in which the shard is open, 0
// when it is not.
func (l *lane) standing(ctx context.Context) (nowMS int64, epoch uint16, err error) {
	r, err := l.e.redis.run(ctx, statsScript, []string{l.keys.meta}, "0", "0")
	if err != nil {
		return 0, 0, err
	}
	res, err := resultOf(&r)
	if err == nil && res.word == "ok" {
		epoch = res.at.Epoch
	}
	return res.nowMS, epoch, err
}

// settle answers the claims that were granted and has the others decided
// again. granted is nil when the batch granted nothing.
func (b *batch) settle(granted *streamEntry, cause error) {
	var entries []dibs.Entry
	if granted != nil {
		entries = granted.entries
		b.lane.advance(granted.last)
		b.lane.e.signal()
	}
	// Callers can leave as long as the batch has not landed: it does when all is
	// known that they wait for.
	type end struct {
		t   *ticket
		d   *dibs.Decision
		err error
	}
	ends := make([]end, 0, len(entries))
	rest := make([]*ticket, 0, len(b.tickets))
	var silent error
	for _, t := range b.tickets {
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
	b.lane.land(b)
	for _, e := range ends {
		if e.err != nil {
			e.t.fail(e.err)
			continue
		}
		e.t.find(e.d)
	}
	none := dibs.Unavail(dibs.EffectNone, cause)
	var answered *answeredError
	if errors.As(cause, &answered) {
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
		held, ok, err := l.e.Find(ctx, g.Position)
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
