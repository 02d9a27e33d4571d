package redisengine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

const (
	// firstElements and maxElements bound the stream elements of one read: each
	// holds up to a batch of entries.
	firstElements, maxElements = 16, 1024
	// trimPortion is how many elements one call drops at most.
	trimPortion = 256
)

// ReadJournal returns entries after a place; see dibs.Journal.
func (e *Engine) ReadJournal(ctx context.Context, id dibs.ShardID, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	var entries []dibs.Entry
	for s, err := range e.elements(ctx, id, after, limit) {
		if err != nil {
			return nil, err
		}
		for i := range s.entries {
			if len(entries) < limit && after.Before(s.entries[i].Cursor) {
				entries = append(entries, s.entries[i])
			}
		}
		if len(entries) >= limit {
			break
		}
	}
	return entries, nil
}

// elements reads the stream after a place, for about so many entries at first.
// The first element may begin before the place and end after it.
func (e *Engine) elements(ctx context.Context, id dibs.ShardID, after dibs.Cursor, wanted int) iter.Seq2[*streamEntry, error] {
	return func(yield func(*streamEntry, error) bool) {
		if e.closed.Load() {
			yield(nil, errClosed)
			return
		}
		count, read, total := min(firstElements, max(wanted, 1)), 0, 0
		for after != (dibs.Cursor{Epoch: math.MaxUint16, Seq: math.MaxUint32}) {
			page, err := e.page(ctx, id, after, count)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range page {
				if err := s.decode(); err != nil {
					if err := e.mend(ctx, id, after, s, err); err != nil {
						yield(nil, err)
						return
					}
				}
				if !yield(s, nil) {
					return
				}
				read, total, after = read+1, total+len(s.entries), s.last
			}
			if len(page) < count {
				return
			}
			// As many elements as the rest will need, going by those before.
			count = min(max((wanted-total)*read/total+1, 1), maxElements)
		}
	}
}

// page reads elements of the stream that end after a place.
func (e *Engine) page(ctx context.Context, id dibs.ShardID, after dibs.Cursor, count int) ([]*streamEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, "XRANGE", keysOf(id).journal, next(after), "+", "COUNT", strconv.Itoa(count))
	if err != nil {
		return nil, fault(ctx, dibs.EffectNone, err)
	}
	page := make([]*streamEntry, len(r.list))
	for i, element := range r.list {
		if len(element.list) != 2 {
			return nil, fmt.Errorf("redisengine: the journal of shard %s: %w", id, dibs.ErrCorrupt)
		}
		last, err := streamPlace(element.list[0].text)
		if err != nil {
			return nil, err
		}
		// Of any other shape, it has no payload that could be read.
		page[i] = &streamEntry{last: last}
		fields := element.list[1].list
		if len(fields) == 2 || len(fields) == 4 {
			page[i].payload = fields[1].text
		}
		if len(fields) == 4 {
			page[i].claims = fields[3].text
		}
	}
	return page, nil
}

// next is the lowest stream id after a place.
func next(after dibs.Cursor) string {
	return fmt.Sprintf("%d-%d", after.Epoch, uint64(after.Seq)+1)
}

// TrimJournal drops settled entries; see dibs.Journal. Entries that were
// decided together go together, when the last of them may.
func (e *Engine) TrimJournal(ctx context.Context, id dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	if e.closed.Load() {
		return errClosed
	}
	for {
		dropped, err := e.trimPortion(ctx, id, upTo, before.UnixMilli())
		if err != nil || dropped < trimPortion {
			return err
		}
	}
}

func (e *Engine) trimPortion(ctx context.Context, id dibs.ShardID, upTo dibs.Cursor, beforeMS int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.run(ctx, trimScript, []string{keysOf(id).journal}, streamID(upTo), itoa(beforeMS), strconv.Itoa(trimPortion))
	if err != nil {
		return 0, fault(ctx, dibs.EffectUnknown, err)
	}
	res, err := resultOf(&r)
	if err != nil {
		return 0, dibs.Unavail(dibs.EffectUnknown, err)
	}
	if err := refusal(&res); err != nil {
		return 0, err
	}
	if len(res.rest) < 1 {
		return 0, dibs.Unavail(dibs.EffectUnknown, errShape)
	}
	return res.rest[0].number, nil
}

// JournalEnd returns the place of a shard's last entry, trimmed or not; see
// dibs.Journal.
func (e *Engine) JournalEnd(ctx context.Context, id dibs.ShardID) (dibs.Cursor, error) {
	if e.closed.Load() {
		return dibs.Cursor{}, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.call(ctx, "XINFO STREAM", keysOf(id).journal)
	var answered *answeredError
	if !errors.As(err, &answered) || !strings.Contains(answered.message, "no such key") {
		if err != nil {
			return dibs.Cursor{}, fault(ctx, dibs.EffectNone, err)
		}
		return streamPlace(r.pairs()["last-generated-id"].text)
	}
	// It was retired, or never was.
	r, err = e.redis.call(ctx, "GET", keysOf(id).end)
	if err != nil {
		return dibs.Cursor{}, fault(ctx, dibs.EffectNone, err)
	}
	if r.text == "" {
		return dibs.Cursor{}, nil
	}
	return streamPlace(r.text)
}
