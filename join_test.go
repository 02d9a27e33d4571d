package dibs

import (
	"context"
	"testing"
	"time"
)

// placed is an engine whose lease everybody gets.
type placed struct{ counting }

func (*placed) Lease(context.Context, ShardID, Cursor) (bool, error) { return true, nil }

// totalled is a ledger of which only a shard's totals are asked.
type totalled struct {
	Ledger
	totals ShardTotals
}

func (l *totalled) Totals(context.Context, ShardID) (ShardTotals, error) { return l.totals, nil }

// A node attaches to a shard only where the engine is in the ledger's epoch and has
// all that the ledger has: an engine behind it would grant places that are taken.
func TestAttachOnlyToWhatTheLedgerContinues(t *testing.T) {
	shard := ShardID{Campaign: 1}
	l := &totalled{totals: ShardTotals{Epoch: 2, Position: Cursor{Epoch: 2, Seq: 9}}}
	for what, c := range map[string]struct {
		head Cursor
		want bool
	}{
		"where the ledger is":             {Cursor{Epoch: 2, Seq: 9}, true},
		"behind it in the same epoch":     {Cursor{Epoch: 2, Seq: 8}, false},
		"in an epoch before the ledger's": {Cursor{Epoch: 1, Seq: 20}, false},
		"in an epoch after the ledger's":  {Cursor{Epoch: 3, Seq: 1}, false},
	} {
		e := &placed{counting{shared: true, stats: map[ShardID]ShardStats{shard: {Head: c.head, Settled: c.head}}}}
		s := &Service{cfg: Config{}.WithDefaults(), engine: e, ledger: l}
		joined, err := s.attach(t.Context(), newSettling(shard, &live{}, time.Now()))
		if err != nil || joined != c.want {
			t.Errorf("an engine %s is attached to: %t, %v; want %t", what, joined, err, c.want)
		}
	}
}
