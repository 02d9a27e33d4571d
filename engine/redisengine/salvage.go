package redisengine

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// salvage gives an element of the journal that cannot be read the entries that it
// must have had, when it follows a place. An open shard has its claims beside its
// journal too: user, key, quantity, time and items, by their places.
// A place that no claim has is an EntryUnreadable, which is set aside, visibly,
// instead of halting the campaign. cause is returned where even the places are
// not known, or the shard is not open.
func (s *shard) salvage(ctx context.Context, after dibs.Cursor, el *format.Element, cause error) error {
	if el.Last.Epoch != after.Epoch || el.Last.Seq-after.Seq > format.MaxBatch {
		return cause
	}
	before, err := s.stats(ctx)
	if err != nil {
		return unsalvaged(cause, err)
	}
	var entries []dibs.Entry
	unknown := 0
	for at := after; at.Before(el.Last); {
		at.Seq++
		en, err := s.entryAt(ctx, at)
		if err != nil {
			return unsalvaged(cause, err)
		}
		if en.Kind == dibs.EntryUnreadable {
			unknown++
		}
		entries = append(entries, en)
	}
	// A process that is opening the shard meanwhile has loaded some of its claims only.
	now, err := s.stats(ctx)
	if err != nil || now.Head.Epoch != before.Head.Epoch {
		return unsalvaged(cause, err)
	}
	el.Entries, el.Salvaged = entries, true
	s.p.log.Error("a part of the journal cannot be read: its claims are taken from what the shard holds beside it",
		"shard", s.id.String(), "after", after.String(), "to", el.Last.String(), "claims", len(entries)-unknown, "unknown", unknown, "err", cause)
	return nil
}

// unsalvaged is why an element stays unreadable: what will pass comes first.
func unsalvaged(cause, err error) error {
	if err == nil || errors.Is(err, dibs.ErrNotOpen) {
		return cause
	}
	return err
}

// entryAt is what the journal must have had at a place, as the shard has it.
func (s *shard) entryAt(ctx context.Context, at dibs.Cursor) (dibs.Entry, error) {
	f, err := s.look(ctx, at)
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Entry{Cursor: at, Kind: dibs.EntryUnreadable}, nil
	}
	if err != nil {
		return dibs.Entry{}, err
	}
	// It fails where the record is too short for a key.
	g, _, err := format.CutGrant(s.id, f.user, f.record, f.payInMS)
	if err != nil {
		return dibs.Entry{}, dibs.Unavail(dibs.EffectNone, err)
	}
	numbers, err := itemNumbers(f.items)
	return dibs.Entry{
		Cursor: at, Kind: dibs.EntryGrant, At: g.At, UserID: f.user, Key: binary.BigEndian.Uint64([]byte(f.record[format.TimeSize:])),
		PayBy: g.PayBy, Quantity: g.Quantity, Items: numbers,
	}, err
}

// itemNumbers reads the numbers of a run of items; nil when it is empty.
func itemNumbers(run string) ([]uint32, error) {
	values, err := format.ItemValues(run)
	if err != nil {
		return nil, err
	}
	var numbers []uint32
	for _, v := range values {
		numbers = append(numbers, binary.BigEndian.Uint32([]byte(run[:4])))
		run = run[6+len(v):]
	}
	return numbers, nil
}
