package redisengine

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// mend gives an element of the journal that cannot be read the entries that it
// must have had, when it follows a place. What a claim is, a shard that is open
// has beside its journal too: user, key, quantity, time and items, by its place.
// A place that no claim has is an EntryUnreadable, which is set aside, visibly,
// instead of halting the campaign. cause is returned where even the places are
// not known, or the shard is not open.
func (e *Engine) mend(ctx context.Context, id dibs.ShardID, after dibs.Cursor, s *streamEntry, cause error) error {
	if s.last.Epoch != after.Epoch || s.last.Seq-after.Seq > maxBatch {
		return cause
	}
	before, err := e.Stats(ctx, id)
	if err != nil {
		return unmended(cause, err)
	}
	var entries []dibs.Entry
	unknown := 0
	for at := after; at.Before(s.last); {
		at.Seq++
		en, err := e.entryAt(ctx, id, at)
		if err != nil {
			return unmended(cause, err)
		}
		if en.Kind == dibs.EntryUnreadable {
			unknown++
		}
		entries = append(entries, en)
	}
	// Who is opening the shard meanwhile has some of its claims only.
	now, err := e.Stats(ctx, id)
	if err != nil || now.Head.Epoch != before.Head.Epoch {
		return unmended(cause, err)
	}
	s.entries, s.mended = entries, true
	e.log.Error("a part of the journal cannot be read: its claims are taken from what the shard holds beside it",
		"shard", id.String(), "after", after.String(), "to", s.last.String(), "claims", len(entries)-unknown, "unknown", unknown, "err", cause)
	return nil
}

// unmended is why an element stays unreadable: what will pass comes first.
func unmended(cause, err error) error {
	if err == nil || errors.Is(err, dibs.ErrNotOpen) {
		return cause
	}
	return err
}

// entryAt is what the journal must have had at a place, as the shard has it.
func (e *Engine) entryAt(ctx context.Context, id dibs.ShardID, at dibs.Cursor) (dibs.Entry, error) {
	l, err := e.anyLane(id)
	if err != nil {
		return dibs.Entry{}, err
	}
	k := &l.keys
	res, err := l.read(ctx, findScript, []string{k.meta, k.holdings, k.places, k.issued}, itoa(at.Epoch), itoa(at.Seq))
	if errors.Is(err, dibs.ErrNotFound) {
		return dibs.Entry{Cursor: at, Kind: dibs.EntryUnreadable}, nil
	}
	if err != nil {
		return dibs.Entry{}, err
	}
	if len(res.rest) < 4 || len(res.rest[2].text) < timeSize+recordSize {
		return dibs.Entry{}, dibs.Unavail(dibs.EffectNone, errShape)
	}
	payIn, err := strconv.ParseInt(res.rest[0].text, 10, 64)
	if err != nil {
		return dibs.Entry{}, dibs.Unavail(dibs.EffectNone, err)
	}
	user, _, err := cutName(res.rest[1].text)
	if err != nil {
		return dibs.Entry{}, err
	}
	g, _, err := cutGrant(id, user, res.rest[2].text, payIn)
	if err != nil {
		return dibs.Entry{}, dibs.Unavail(dibs.EffectNone, err)
	}
	numbers, err := itemNumbers(res.rest[3].text)
	return dibs.Entry{
		Cursor: at, Kind: dibs.EntryGrant, At: g.At, UserID: user, Key: binary.BigEndian.Uint64([]byte(res.rest[2].text[timeSize:])),
		PayBy: g.PayBy, Quantity: g.Quantity, Items: numbers,
	}, err
}

// itemNumbers reads the numbers of a run of items; nil when it is empty.
func itemNumbers(run string) ([]uint32, error) {
	values, err := itemValues(run)
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
