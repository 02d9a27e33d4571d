package memengine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/dibs-dev/dibs"
)

// Find returns a grant by its position; see dibs.Engine.
// It waits until the grant is durable, so that nobody is shown a claim that a failed
// commit takes back.
func (e *Engine) Find(ctx context.Context, p dibs.Position) (dibs.Grant, bool, error) {
	s, err := e.shard(p.ShardID)
	if errors.Is(err, dibs.ErrNotOpen) {
		return dibs.Grant{}, false, nil
	}
	if err != nil {
		return dibs.Grant{}, false, err
	}
	s.mu.Lock()
	i, ok := s.h.seek(p.Cursor)
	if !ok {
		s.mu.Unlock()
		return dibs.Grant{}, false, nil
	}
	g, wait := s.grantOf(i), s.pending(i+1)
	s.mu.Unlock()
	if err := e.wait(ctx, wait); err != nil {
		return dibs.Grant{}, false, err
	}
	return g, true, nil
}

// HoldingsOf returns a user's grants; see dibs.Engine.
func (e *Engine) HoldingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	if err := e.closed.Load(); err != nil {
		return nil, *err
	}
	hash := maphash.String(e.seed, user)
	var grants []dibs.Grant
	for _, v := range e.shards.Range {
		s := v.(*shard)
		s.mu.Lock()
		newest := s.h.find(hash, user)
		// The newest record is the last to become durable, so its batch stands for all
		// others.
		wait := s.pending(newest)
		for i := newest; i != 0; i = s.h.next(i) {
			grants = append(grants, s.grantOf(i-1))
		}
		s.mu.Unlock()
		if err := e.wait(ctx, wait); err != nil {
			return nil, err
		}
	}
	return grants, nil
}

// Stats counts a shard; see dibs.Engine.
// Head is the last durable place: the settler must not read beyond it.
func (e *Engine) Stats(_ context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	s, err := e.shard(id)
	if err != nil {
		return dibs.ShardStats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := dibs.ShardStats{
		Remaining: s.remaining.Load(), Granted: s.granted, Head: s.durable, HeadAt: s.durableAt,
		Version: s.def.Load().atVersion, Settled: s.settled, Now: e.now().UnixMilli(),
	}
	for _, b := range []*batch{s.cur, s.inFlight} {
		if b != nil {
			st.Queued += int64(b.entries)
		}
	}
	if s.product != nil {
		for st.Uncounted = range s.product.uncounted {
			break
		}
	}
	return st, nil
}

// ReadJournal returns entries after a place; see dibs.Journal.
// A row may hold more than limit entries; the rest is read by the next call.
func (e *Engine) ReadJournal(ctx context.Context, id dibs.ShardID, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	if err := e.closed.Load(); err != nil {
		return nil, *err
	}
	return e.readEntries(ctx, id, after, limit)
}

func (e *Engine) readEntries(ctx context.Context, id dibs.ShardID, after dibs.Cursor, limit int) ([]dibs.Entry, error) {
	rows, err := e.store.ReadRows(ctx, id, after, limit)
	if err != nil {
		return nil, fmt.Errorf("memengine: reading the journal: %w", err)
	}
	entries := make([]dibs.Entry, 0, entriesIn(rows))
	for i := range rows {
		if entries, err = decodeRow(entries, &rows[i], after); err != nil {
			return nil, err
		}
	}
	return entries[:min(len(entries), limit)], nil
}

// entriesIn is how many entries rows can hold. A damaged row cannot make it
// more than a payload has bytes.
func entriesIn(rows []dibs.JournalRow) int {
	n := 0
	for i := range rows {
		n += min(int(rows[i].Last)-int(rows[i].First)+1, len(rows[i].Payload))
	}
	return max(n, 0)
}

// TrimJournal drops settled entries; see dibs.Journal.
func (e *Engine) TrimJournal(ctx context.Context, id dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	return failed("trimming the journal", e.store.TrimRows(ctx, id, upTo, before.UnixMilli()))
}

// JournalEnd returns the place of a shard's last entry; see dibs.Journal.
func (e *Engine) JournalEnd(ctx context.Context, id dibs.ShardID) (dibs.Cursor, error) {
	end, err := e.store.Last(ctx, id)
	return end, failed("reading the journal's end", err)
}

// Lease notes how far the ledger is; see dibs.Journal. No other process has this
// journal.
func (e *Engine) Lease(_ context.Context, id dibs.ShardID, settled dibs.Cursor) (bool, error) {
	s, err := e.shard(id)
	if errors.Is(err, dibs.ErrNotOpen) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if settled != (dibs.Cursor{}) {
		s.settled = settled
	}
	return true, nil
}

// JournalShards lists the shards that have entries; see dibs.Journal.
func (e *Engine) JournalShards(ctx context.Context) ([]dibs.ShardID, error) {
	shards, err := e.store.Shards(ctx)
	return shards, failed("listing the journal", err)
}

// failed says what the store failed with; nil for nil.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("memengine: %s: %w", doing, err)
}
