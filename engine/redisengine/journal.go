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

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

const (
	// firstElements and maxElements bound the stream elements of one read: each
	// holds up to a batch of entries.
	firstElements, maxElements = 16, 1024
	// trimPortion is how many elements one call drops at most.
	trimPortion = 256
)

// readJournal returns entries after a place; see dibs.Journal.
func (s *shard) readJournal(ctx context.Context, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	var entries []dibs.Entry
	for el, err := range s.elements(ctx, after, limit) {
		if err != nil {
			return nil, err
		}
		for i := range el.Entries {
			if len(entries) < limit && after.Before(el.Entries[i].Cursor) {
				entries = append(entries, el.Entries[i])
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
func (s *shard) elements(ctx context.Context, after dibs.Cursor, wanted int) iter.Seq2[*format.Element, error] {
	return func(yield func(*format.Element, error) bool) {
		if s.p.closed.Load() {
			yield(nil, errClosed)
			return
		}
		count, read, total := min(firstElements, max(wanted, 1)), 0, 0
		for after != (dibs.Cursor{Epoch: math.MaxUint16, Seq: math.MaxUint32}) {
			page, err := s.page(ctx, after, count)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, el := range page {
				if err := el.Decode(); err != nil {
					if err := s.salvage(ctx, after, el, err); err != nil {
						yield(nil, err)
						return
					}
				}
				if !yield(el, nil) {
					return
				}
				read, total, after = read+1, total+len(el.Entries), el.Last
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
func (s *shard) page(ctx context.Context, after dibs.Cursor, count int) ([]*format.Element, error) {
	r, err := s.p.call(ctx, "XRANGE", s.keys.Journal, next(after), "+", "COUNT", strconv.Itoa(count))
	if err != nil {
		return nil, err
	}
	page := make([]*format.Element, len(r.List))
	for i, element := range r.List {
		if len(element.List) != 2 {
			return nil, fmt.Errorf("redisengine: the journal of shard %s: %w", s.id, dibs.ErrCorrupt)
		}
		last, err := format.StreamPlace(element.List[0].Text)
		if err != nil {
			return nil, err
		}
		// Of any other shape, it has no payload that could be read.
		page[i] = &format.Element{Last: last}
		fields := element.List[1].List
		parts := []*string{&page[i].Payload, &page[i].Claims, &page[i].References}
		if n := len(fields); n%2 == 0 && n <= 2*len(parts) {
			for k := range n / 2 {
				*parts[k] = fields[2*k+1].Text
			}
		}
	}
	return page, nil
}

// next is the lowest stream id after a place.
func next(after dibs.Cursor) string {
	return fmt.Sprintf("%d-%d", after.Epoch, uint64(after.Seq)+1)
}

// trimJournal drops settled entries; see dibs.Journal. Entries that were
// decided together go together, when the last of them may.
func (s *shard) trimJournal(ctx context.Context, upTo dibs.Cursor, before time.Time) error {
	for {
		dropped, err := s.trimPortion(ctx, upTo, before.UnixMilli())
		if err != nil || dropped < trimPortion {
			return err
		}
	}
}

// trimPortion drops so many settled elements at most, and returns how many it has
// dropped.
func (s *shard) trimPortion(ctx context.Context, upTo dibs.Cursor, beforeMS int64) (int64, error) {
	res, err := s.p.step(ctx, conn.TrimScript, []string{s.keys.Journal},
		format.StreamID(upTo), format.Itoa(beforeMS), strconv.Itoa(trimPortion))
	if err == nil && len(res.Rest) < 1 {
		err = dibs.Unavail(dibs.EffectUnknown, conn.ErrShape)
	}
	if err != nil {
		return 0, err
	}
	return res.Rest[0].Number, nil
}

// journalEnd returns the place of the shard's last entry, trimmed or not; see
// dibs.Journal.
func (s *shard) journalEnd(ctx context.Context) (dibs.Cursor, error) {
	if s.p.closed.Load() {
		return dibs.Cursor{}, errClosed
	}
	r, err := s.p.call(ctx, "XINFO STREAM", s.keys.Journal)
	if err == nil {
		return format.StreamPlace(r.Pairs()["last-generated-id"].Text)
	}
	if answered, ok := errors.AsType[*conn.AnsweredError](err); ok && strings.Contains(answered.Message, "no such key") {
		// It was retired, or never was.
		r, err = s.p.call(ctx, "GET", s.keys.End)
	}
	if err != nil || r.Text == "" {
		return dibs.Cursor{}, err
	}
	return format.StreamPlace(r.Text)
}
