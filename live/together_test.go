package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs"
)

// written is a shared engine with the journal of each shard alone: nothing is open.
type written struct {
	placed
	journals map[dibs.ShardID][]dibs.Entry
}

func (w *written) ReadJournal(_ context.Context, id dibs.ShardID, from dibs.Cursor, limit int) (part []dibs.Entry, err error) {
	for _, e := range w.journals[id] {
		if from.Before(e.Cursor) && len(part) < limit {
			part = append(part, e)
		}
	}
	return part, nil
}

func (w *written) JournalEnd(_ context.Context, id dibs.ShardID) (end dibs.Cursor, err error) {
	if all := w.journals[id]; len(all) > 0 {
		end = all[len(all)-1].Cursor
	}
	return end, nil
}

func (*written) Server(context.Context, dibs.ShardID) (string, error) { return "one", nil }

// departures is a ledger that takes units in that have left another shard, and notes what it has
// settled in which order.
type departures struct {
	Ledger
	settled []string
	at      map[dibs.ShardID]dibs.Cursor
	// away is a shard of which nothing can be settled; nil for none.
	away *dibs.ShardID
}

func (l *departures) Totals(_ context.Context, id dibs.ShardID) (ShardTotals, error) {
	return ShardTotals{Epoch: 1, Position: l.at[id]}, nil
}

func (l *departures) Settle(_ context.Context, batches []Batch) error {
	var add []string
	for _, b := range batches {
		if l.away != nil && b.Shard == *l.away {
			return dibs.Unavail(dibs.EffectNone, errors.New("it is away"))
		}
		for _, e := range b.Entries {
			move, _ := dibs.TransferOf(e.Ref)
			if e.Quantity > 0 && !b.UnknownTransfers && !slices.Contains(l.settled, move.Leaves()) && !slices.Contains(add, move.Leaves()) {
				return fmt.Errorf("%w: %q", ErrNotLeft, e.Ref)
			}
			add = append(add, e.Ref)
		}
	}
	l.settled = append(l.settled, add...)
	for _, b := range batches {
		l.at[b.Shard] = b.To
	}
	return nil
}

// scattered is a campaign over three shards between which units went, and the ledger knows of nothing:
// from 0 to 1 and back, and from 1 on to 2.
func scattered(t *testing.T) (n *Node, l *Campaign, ledger *departures, want []string) {
	there, back, on := dibs.Transfer{ID: "m-1", To: 1}, dibs.Transfer{ID: "m-2", To: 0}, dibs.Transfer{ID: "m-3", To: 2}
	e := &written{placed{counting{shared: true}}, map[dibs.ShardID][]dibs.Entry{}}
	write := func(shard uint8, quantity int64, ref string) {
		id := dibs.ShardID{Campaign: 1, Shard: shard}
		at := dibs.Cursor{Epoch: 1, Seq: uint32(len(e.journals[id]) + 1)}
		e.journals[id] = append(e.journals[id], dibs.Entry{Cursor: at, Kind: dibs.EntryAdjust, Quantity: quantity, Ref: ref})
		want = append(want, ref)
	}
	write(0, -2, there.Leaves())
	write(1, 2, there.Arrives())
	write(1, -1, back.Leaves())
	write(0, 1, back.Arrives())
	write(1, -1, on.Leaves())
	write(2, 1, on.Arrives())
	ledger = &departures{at: map[dibs.ShardID]dibs.Cursor{}}
	n, l = newNode(t, Config{Engine: e, Ledger: ledger}), NewCampaign(&dibs.Campaign{ID: "c", Number: 1, Shards: 3})
	for i := range uint8(3) {
		id := dibs.ShardID{Campaign: 1, Shard: i}
		l.Shards, ledger.at[id] = append(l.Shards, newShard(id, l)), dibs.Cursor{Epoch: 1}
	}
	return n, l, ledger, want
}

// What went between shards is settled in the order in which it went, also what went to and fro, and
// what came from a shard that this node opens a little later.
func TestShardsAreSettledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, ledger, want := scattered(t)
		l.Shards[2].progress.enter(1, dibs.Cursor{Epoch: 1})
		go func() {
			<-time.After(OpenPatience / 2)
			l.Shards[0].progress.enter(1, dibs.Cursor{Epoch: 1})
			l.Shards[1].progress.enter(1, dibs.Cursor{Epoch: 1})
		}()
		if err := n.Loader.settleTogether(t.Context(), l.Shards[2]); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		order := slices.Clone(ledger.settled)
		if slices.Sort(order); !slices.Equal(order, want) {
			t.Errorf("settled are %q, want %q", order, want)
		}
		if err := ledger.inOrder(); err != nil {
			t.Error(err)
		}
	})
}

// A node that went on while the ledger went back takes what it knows of the other shards for what the
// ledger has. It asks first, and waits for a shard that it has to open again.
func TestTheLedgerWentBackForAnIdleShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, ledger, _ := scattered(t)
		l.Shards[0].progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 2})
		l.Shards[1].progress.enter(1, dibs.Cursor{Epoch: 1, Seq: 3})
		l.Shards[2].progress.enter(1, dibs.Cursor{Epoch: 1})
		for _, s := range l.Shards {
			// The loads themselves are not of interest.
			s.reload.opening.Store(true)
		}
		go func() {
			<-time.After(OpenPatience / 2)
			l.Shards[0].progress.enter(1, dibs.Cursor{Epoch: 1})
			l.Shards[1].progress.enter(1, dibs.Cursor{Epoch: 1})
		}()
		if err := n.Loader.settleTogether(t.Context(), l.Shards[2]); err != nil {
			t.Fatal(err)
		}
		if err := ledger.inOrder(); err != nil || len(ledger.settled) != 6 {
			t.Errorf("settled are %q: %v", ledger.settled, err)
		}
	})
}

// A shard that cannot be settled is waited for, too.
func TestAShardInTroubleIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, ledger, _ := scattered(t)
		for _, s := range l.Shards {
			s.progress.enter(1, dibs.Cursor{Epoch: 1})
		}
		ledger.away = &l.Shards[1].ID
		if err := n.Loader.settleTogether(t.Context(), l.Shards[2]); !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("settled beside a shard that cannot be: %v", err)
		}
		ledger.away = nil
		if err := n.Loader.settleTogether(t.Context(), l.Shards[2]); err != nil || len(ledger.settled) != 6 {
			t.Errorf("settled are %q: %v", ledger.settled, err)
		}
		if err := ledger.inOrder(); err != nil {
			t.Error(err)
		}
	})
}

// What went between the shards of a campaign that is over is settled in its order as well, whatever
// the order of the shards. What has arrived and never left is settled in the end.
func TestShardsOfWhatIsOverAreSettledInOrder(t *testing.T) {
	n, l, ledger, _ := scattered(t)
	var ids []dibs.ShardID
	for _, s := range slices.Backward(l.Shards) {
		ids = append(ids, s.ID)
	}
	if err := n.Loader.SettleTails(t.Context(), l.Def(), ids, false); err != nil || len(ledger.settled) != 6 {
		t.Errorf("settled are %q: %v", ledger.settled, err)
	}
	if err := ledger.inOrder(); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n, l, ledger, _ := scattered(t)
		first, last := l.Shards[0].ID, l.Shards[2].ID
		if err := n.Loader.SettleTails(t.Context(), l.Def(), []dibs.ShardID{first, last}, false); !errors.Is(err, ErrNotLeft) {
			t.Errorf("without the second shard: %v", err)
		}
		if err := n.Loader.SettleTails(t.Context(), l.Def(), []dibs.ShardID{last}, true); err != nil || !slices.Equal(ledger.settled, []string{"move m-1 to 1 -", "move m-3 to 2"}) {
			t.Errorf("with what was given up settled are %q: %v", ledger.settled, err)
		}
		<-time.After(leftWithin)
		if err := n.Loader.SettleTails(t.Context(), l.Def(), []dibs.ShardID{first, last}, false); err != nil || len(ledger.settled) != 3 {
			t.Errorf("settled are %q: %v", ledger.settled, err)
		}
	})
}

func (l *departures) inOrder() error {
	for i, ref := range l.settled {
		if move, _ := dibs.TransferOf(ref); ref == move.Arrives() && !slices.Contains(l.settled[:i], move.Leaves()) {
			return fmt.Errorf("%q is settled before what left: %q", ref, l.settled)
		}
	}
	return nil
}

// While another shard is not open nothing is settled that may have come from it. After half a minute
// it is not waited for any more: its node, or its server, may be away for long.
func TestAShardThatIsAwayIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, ledger, _ := scattered(t)
		l.Shards[1].progress.enter(1, dibs.Cursor{Epoch: 1})
		l.Shards[2].progress.enter(1, dibs.Cursor{Epoch: 1})
		began := time.Now()
		for {
			err := n.Loader.settleTogether(t.Context(), l.Shards[2])
			if err == nil {
				break
			}
			if !errors.Is(err, dibs.ErrNotOpen) || len(ledger.settled) > 0 {
				t.Fatalf("%v, and settled are %q", err, ledger.settled)
			}
		}
		if took := time.Since(began); took < leftWithin || took > leftWithin+OpenPatience {
			t.Errorf("it was waited for %v", took)
		}
		if err := ledger.inOrder(); err != nil || len(ledger.settled) > 0 {
			t.Errorf("settled are %q: %v", ledger.settled, err)
		}
	})
}
