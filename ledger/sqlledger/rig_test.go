package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/live"
)

// planted is a ledger with a campaign of ten items, of which three are granted,
// and one of ten units, of which two are.
func planted(t *testing.T) (path string, l *sqlledger.Ledger, items, units *dibs.Campaign) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ledger.db")
	l = openLedger(t, path)
	t.Cleanup(func() { closeAll(t, l) })
	items, units = plant(t, l)
	return path, l, items, units
}

// plant fills an empty ledger for planted.
func plant(t *testing.T, l *sqlledger.Ledger) (items, units *dibs.Campaign) {
	t.Helper()
	items = &dibs.Campaign{ID: "items", LimitPerUser: 5, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Items, Total: 10}}
	units = &dibs.Campaign{ID: "units", LimitPerUser: 5, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 10}}
	var values []string
	for i := range 10 {
		values = append(values, fmt.Sprintf("v%d", i))
	}
	for _, c := range []*dibs.Campaign{items, units} {
		list := values
		if c == units {
			list = nil
		}
		if err := l.InsertCampaign(t.Context(), c, list); err != nil {
			t.Fatal(err)
		}
		load, err := l.LoadShard(t.Context(), c, dibs.ShardID{Campaign: c.Number}, live.Opener{})
		if err != nil {
			t.Fatal(err)
		}
		b := bigBatch(c, load.Epoch, 2)
		if c == items {
			b.Entries[1].Items = []uint32{0}
			b.Entries[2].Items = []uint32{1, 2}
			b.Entries[2].Quantity = 2
		}
		if err := l.Settle(t.Context(), []live.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	return items, units
}

// bigBatch opens an epoch and grants n units.
func bigBatch(c *dibs.Campaign, epoch uint16, n int) live.Batch {
	b := live.Batch{Campaign: c, Shard: dibs.ShardID{Campaign: c.Number}, Fence: epoch}
	b.To = dibs.Cursor{Epoch: epoch, Seq: 1}
	b.Entries = []dibs.Entry{{Cursor: b.To, Kind: dibs.EntryOpen}}
	for i := range n {
		b.To.Seq++
		b.Entries = append(b.Entries, dibs.Entry{Cursor: b.To, Kind: dibs.EntryGrant, UserID: fmt.Sprintf("u%d", i), Quantity: 1})
	}
	return b
}

// endsAt checks where the journal ends.
func endsAt(j *sqlledger.JournalTable, seq uint32) error {
	last, err := j.Last(context.Background(), dibs.ShardID{Campaign: 1})
	if err != nil || last.Seq != seq {
		return fmt.Errorf("the journal ends at %s instead of %d: %w", last, seq, err)
	}
	return nil
}

// settler settles a journal of its own making, batch by batch, as the service
// does: what fails is settled again, and the position says how far it went.
type settler struct {
	t     *testing.T
	l     *sqlledger.Ledger
	c     *dibs.Campaign
	shard dibs.ShardID
	next  live.Batch
	units int64
}

func newSettler(t *testing.T, l *sqlledger.Ledger) *settler {
	t.Helper()
	s := &settler{t: t, l: l, c: &dibs.Campaign{
		ID: "c", LimitPerUser: 1, Shards: 1, Version: 1, Stock: dibs.Stock{Kind: dibs.Units, Total: 1_000_000},
	}}
	if err := l.InsertCampaign(t.Context(), s.c, nil); err != nil {
		t.Fatal(err)
	}
	s.shard = dibs.ShardID{Campaign: s.c.Number}
	load, err := l.LoadShard(t.Context(), s.c, s.shard, live.Opener{})
	if err != nil {
		t.Fatal(err)
	}
	s.next = bigBatch(s.c, load.Epoch, 0)
	s.settled(l.Settle(t.Context(), []live.Batch{s.next}))
	return s
}

// grow makes the next batch, of n grants.
func (s *settler) grow(n int) {
	last := s.next.To
	s.next = live.Batch{Campaign: s.c, Shard: s.shard, Fence: last.Epoch, From: last, To: last}
	for range n {
		s.next.To.Seq++
		s.next.Entries = append(s.next.Entries, dibs.Entry{
			Cursor: s.next.To, Kind: dibs.EntryGrant, UserID: fmt.Sprintf("u%d", s.next.To.Seq), Quantity: 1,
		})
	}
	s.units += int64(n)
}

// settled checks a settling that had to work.
func (s *settler) settled(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// settle settles the batch until it is in, and returns the errors on the way.
func (s *settler) settle(ctx context.Context) (errs []error) {
	s.t.Helper()
	for {
		err := s.l.Settle(ctx, []live.Batch{s.next})
		if err == nil {
			return errs
		}
		errs = append(errs, err)
		if errors.Is(err, dibs.ErrPositionMoved) {
			totals, err := s.l.Totals(ctx, s.shard)
			if err == nil && totals.Position == s.next.To {
				return errs
			}
			if err == nil {
				s.t.Fatalf("the position moved to %s on the way to %s", totals.Position, s.next.To)
			}
			continue
		}
		if !errors.Is(err, dibs.ErrUnavailable) {
			s.t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			s.t.Fatal(errors.Join(append(errs, ctx.Err())...))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// check audits what was settled: nothing is missing and nothing is there twice.
func (s *settler) check() {
	s.t.Helper()
	a, err := s.l.Audit(s.t.Context(), s.c)
	if err != nil || a.Claims != s.units || a.Held != s.units || len(a.BadTotals)+len(a.OverLimit) > 0 || a.BeyondPosition != 0 {
		s.t.Errorf("after %d units the audit says %+v, %v", s.units, a, err)
	}
	totals, err := s.l.Totals(s.t.Context(), s.shard)
	if err != nil || totals.Position != s.next.To {
		s.t.Errorf("the position is %s instead of %s: %v", totals.Position, s.next.To, err)
	}
}

// oneRow is a row of one entry.
func oneRow(seq uint32) []dibs.JournalRow {
	return []dibs.JournalRow{{Shard: dibs.ShardID{Campaign: 1}, Epoch: 1, First: seq, Last: seq, Payload: []byte("x")}}
}
