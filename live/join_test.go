package live

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// placed is an engine whose lease everybody gets.
type placed struct{ counting }

func (*placed) Lease(context.Context, dibs.ShardID, dibs.Cursor) (bool, error) { return true, nil }

// totalled is a ledger of which only a shard's totals are asked.
type totalled struct {
	Ledger
	totals dibs.ShardTotals
}

func (l *totalled) Totals(context.Context, dibs.ShardID) (dibs.ShardTotals, error) {
	return l.totals, nil
}

// A node attaches to a shard only where the engine is in the ledger's epoch and has
// all that the ledger has: an engine behind it would grant places that are taken.
func TestAttachOnlyToWhatTheLedgerContinues(t *testing.T) {
	shard := dibs.ShardID{Campaign: 1}
	l := &totalled{totals: dibs.ShardTotals{Epoch: 2, Position: dibs.Cursor{Epoch: 2, Seq: 9}}}
	for what, c := range map[string]struct {
		head dibs.Cursor
		want bool
	}{
		"where the ledger is":             {dibs.Cursor{Epoch: 2, Seq: 9}, true},
		"behind it in the same epoch":     {dibs.Cursor{Epoch: 2, Seq: 8}, false},
		"in an epoch before the ledger's": {dibs.Cursor{Epoch: 1, Seq: 20}, false},
		"in an epoch after the ledger's":  {dibs.Cursor{Epoch: 3, Seq: 1}, false},
	} {
		e := &placed{counting{shared: true, stats: map[dibs.ShardID]dibs.ShardStats{shard: {Head: c.head, Settled: c.head}}}}
		s := newNode(t, Config{Engine: e, Ledger: l})
		joined, err := s.Loader.attach(t.Context(), newShard(shard, &Campaign{}, time.Now()))
		if err != nil || joined != c.want {
			t.Errorf("an engine %s is attached to: %t, %v; want %t", what, joined, err, c.want)
		}
	}
}
