package live

import (
	"context"
	"errors"
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
	totals ShardTotals
}

func (l *totalled) Totals(context.Context, dibs.ShardID) (ShardTotals, error) {
	return l.totals, nil
}

// CampaignByNumber is of version 3.
func (*totalled) CampaignByNumber(context.Context, uint32) (*dibs.Campaign, error) {
	return &dibs.Campaign{Version: 3}, nil
}

// A node attaches to a shard only where the engine is in the ledger's epoch and has
// all that the ledger has: an engine behind it would grant places that are taken. One
// with a later version than the ledger's would refuse every change.
func TestAttachOnlyToWhatTheLedgerContinues(t *testing.T) {
	shard := dibs.ShardID{Campaign: 1}
	l := &totalled{totals: ShardTotals{Epoch: 2, Position: dibs.Cursor{Epoch: 2, Seq: 9}}}
	for what, c := range map[string]struct {
		head    dibs.Cursor
		version int64
		want    bool
	}{
		"where the ledger is":                       {dibs.Cursor{Epoch: 2, Seq: 9}, 2, true},
		"with a change that this node has not read": {dibs.Cursor{Epoch: 2, Seq: 9}, 3, true},
		"with a change that the ledger has lost":    {dibs.Cursor{Epoch: 2, Seq: 9}, 4, false},
		"behind it in the same epoch":               {dibs.Cursor{Epoch: 2, Seq: 8}, 2, false},
		"in an epoch before the ledger's":           {dibs.Cursor{Epoch: 1, Seq: 20}, 2, false},
		"in an epoch after the ledger's":            {dibs.Cursor{Epoch: 3, Seq: 1}, 2, false},
	} {
		st := dibs.ShardStats{Head: c.head, Settled: c.head, Version: c.version}
		e := &placed{counting{shared: true, stats: map[dibs.ShardID]dibs.ShardStats{shard: st}}}
		s := newNode(t, Config{Engine: e, Ledger: l})
		joined, err := s.Loader.attach(t.Context(), newShard(shard, NewCampaign(&dibs.Campaign{Version: 2})))
		if err != nil || joined != c.want {
			t.Errorf("an engine %s is attached to: %t, %v; want %t", what, joined, err, c.want)
		}
	}
}

// A ledger that is where another node has settled to is followed. From one that went back
// in time a shared shard is loaded again, and nothing of it is settled until then.
func TestALedgerThatWentBackIsNotFollowed(t *testing.T) {
	shard, at := dibs.ShardID{Campaign: 1}, func(seq uint32) dibs.Cursor { return dibs.Cursor{Epoch: 2, Seq: seq} }
	for what, c := range map[string]struct {
		shared    bool
		ledger    dibs.Cursor
		wantFence uint16
		want      dibs.Cursor
	}{
		"ahead":                           {true, at(9), 2, at(9)},
		"behind":                          {true, at(5), 0, at(7)},
		"behind an engine of one process": {false, at(5), 2, at(5)},
	} {
		e := &placed{counting{shared: c.shared}}
		s := newNode(t, Config{Engine: e, Ledger: &totalled{totals: ShardTotals{Epoch: 2, Position: c.ledger}}})
		sh := newShard(shard, NewCampaign(&dibs.Campaign{}))
		sh.progress.enter(2, at(7))
		// The load itself is not of interest.
		sh.reload.opening.Store(true)
		same, err := s.Settler.askPosition(t.Context(), sh)
		if fence, got := sh.progress.fenced(); err != nil || same || fence != c.wantFence || got != c.want {
			t.Errorf("a ledger %s: the same %t, %v, and the shard is at %v under the fence %d; want %v under %d", what, same, err, got, fence, c.want, c.wantFence)
		}
	}
}

// A load that began before its campaign was ended does not open it. The administrator may have the answer already, which
// says that nothing is granted any more.
func TestALoadDoesNotOpenWhatWasEnded(t *testing.T) {
	shard, ends := dibs.ShardID{Campaign: 1}, time.Now().Add(time.Hour)
	for state, want := range map[dibs.State]error{dibs.Published: nil, dibs.PausedState: nil, dibs.EndedState: dibs.ErrStale} {
		l := &numbered{totalled{totals: ShardTotals{Epoch: 2}}, &dibs.Campaign{Number: 1, State: state, EndsAt: ends, Shards: 1, Version: 3}}
		n := newNode(t, Config{Engine: &placed{counting{shared: true}}, Ledger: l})
		loaded := &dibs.Campaign{Number: 1, State: dibs.Published, EndsAt: ends, Shards: 1, Version: 2}
		if err := n.Loader.stands(t.Context(), loaded, shard, 2); !errors.Is(err, want) {
			t.Errorf("a load of a campaign that is %s by now: %v, want %v", state, err, want)
		}
	}
}

// numbered is a ledger that knows one campaign by its number.
type numbered struct {
	totalled
	c *dibs.Campaign
}

func (l *numbered) CampaignByNumber(context.Context, uint32) (*dibs.Campaign, error) { return l.c, nil }
