package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// testEpochFence: what was read under one epoch changes nothing under a later
// one. A settler may be stopped for minutes between reading a batch and writing
// it. Meanwhile another node may load the shard on a server that lacks these
// entries: the old ones would then stand at places that new claims get.
func testEpochFence(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	f.settle(s)
	s.grant("u2", 1)
	s.adjust("w", -2)
	stale := s.batch()
	// Both ways to raise the epoch must make the batch stale.
	raise := map[string]func(){
		"a load":  func() { f.load(c, 0) },
		"a fence": func() { f.fence(s.shard, live.Opener{}) },
	}
	for what, do := range raise {
		before := f.totals(c, 0)
		do()
		raised := f.totals(c, 0)
		if raised.Epoch <= before.Epoch {
			t.Errorf("%s leaves the epoch at %d", what, raised.Epoch)
		}
		wants(t, "a batch that was read before "+what, l.Live.Settle(ctx, []live.Batch{stale}), dibs.ErrFenced)
		// Quarantine moves the position as well, so it is fenced in the same way.
		one := stale
		one.Entries = stale.Entries[:1]
		one.To = one.Entries[0].Cursor
		wants(t, "an entry to quarantine that was read before "+what, l.Live.Quarantine(ctx, one, "a test"), dibs.ErrFenced)
		same(t, "the totals after "+what, f.totals(c, 0), raised)
	}
	// A fence is for what was seen: a shard that was opened or settled since stays as it is.
	now := f.totals(c, 0)
	for what, seen := range map[string]live.ShardTotals{
		"an earlier epoch":    {Epoch: now.Epoch - 1, Position: now.Position},
		"an earlier position": {Epoch: now.Epoch, Position: dibs.Cursor{Epoch: now.Position.Epoch, Seq: now.Position.Seq - 1}},
	} {
		wants(t, "a fence for "+what, errOf(l.Live.Fence(ctx, s.shard, live.Opener{}, seen)), dibs.ErrPositionMoved)
		same(t, "the totals after a fence for "+what, f.totals(c, 0), now)
	}

	// Only the very epoch fits, not any that is high enough.
	early := stale
	early.Fence = f.totals(c, 0).Epoch + 1
	wants(t, "a batch of an epoch that is not yet", l.Live.Settle(ctx, []live.Batch{early}), dibs.ErrFenced)

	// The same entries, read again, are taken; behind another position they are
	// not.
	stale.Fence = f.totals(c, 0).Epoch
	f.must(l.Live.Settle(ctx, []live.Batch{stale}))
	wants(t, "the same batch again", l.Live.Settle(ctx, []live.Batch{stale}), dibs.ErrPositionMoved)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(6))
	f.clean(c)
}

// testFenceCommands: a raised epoch drops the commands that wait, since the
// next load counts what they carry, and those of other shards stay. If they
// stayed, the engine would add stock that its load has counted.
func testFenceCommands(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, d := f.insert(campaign("c", 10)), f.insert(campaign("d", 10))
	_, s := f.load(c, 0)
	_, other := f.load(d, 0)
	for _, shard := range []dibs.ShardID{s.shard, other.shard} {
		f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: shard, Ref: "more", Delta: 5}))
	}
	f.fence(s.shard, live.Opener{})
	left := f.commands()
	if len(left) != 1 || left[0].Shard != other.shard {
		t.Errorf("after the fence the commands are %+v, want those of shard %s alone", left, other.shard)
	}
	load, _ := f.load(c, 0)
	same(t, "the stock that the next load has", load.StockLeft, int64(15))
}

// testDropCommands: an older ledger, restored or promoted, gives the ids of commands that
// it has lost to others. A node that carried out one of the lost ones drops none of those:
// the engine would never have what they carry.
func testDropCommands(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(inShards(2, campaign("c", 10)))
	_, s := f.load(c, 1)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "more", Delta: 5}))
	it := f.commands()[0]
	for what, change := range map[string]func(*live.Command){
		"another campaign": func(cmd *live.Command) { cmd.Shard.Campaign++ },
		"another shard":    func(cmd *live.Command) { cmd.Shard.Shard-- },
		"another epoch":    func(cmd *live.Command) { cmd.Adjust.Epoch++ },
		"another ref":      func(cmd *live.Command) { cmd.Adjust.Ref = "lost" },
		"releases": func(cmd *live.Command) {
			cmd.Adjust, cmd.Releases = dibs.Adjustment{}, []dibs.Release{{Claim: dibs.Position{ShardID: s.shard}, Epoch: it.Epoch()}}
		},
		"releases of another epoch": func(cmd *live.Command) {
			cmd.Releases = []dibs.Release{{Claim: dibs.Position{ShardID: s.shard}, Epoch: it.Epoch() + 1}}
		},
	} {
		lost := it
		change(&lost)
		f.must(l.Live.DropCommands(ctx, []live.Command{lost}))
		same(t, "the commands after one of the same id was dropped, of "+what, f.commands(), []live.Command{it})
	}
	f.must(l.Live.DropCommands(ctx, []live.Command{it}))
	same(t, "the commands after it was dropped", len(f.commands()), 0)
}

// testElsewhere: a server that lacks the shard's epoch gets it only once the
// one that holds it is not seen any more. Two servers may both believe that
// they are the master after a failover. The ledger alone decides which of them
// gets the next epoch: a server that has the shard's last epoch in its journal,
// the one that holds it, or any other once the holder is not seen any more.
func testElsewhere(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	// It is live by the clock of every database.
	c := campaign("c", 10)
	c.EndsAt = start.AddDate(100, 0, 0)
	f.insert(c)
	id := dibs.ShardID{Campaign: c.Number}
	sees := func(seen, gone []string, want ...dibs.ShardID) {
		t.Helper()
		elsewhere := try(l.Live.SeeServers(ctx, seen, gone)).must(t)
		same(t, fmt.Sprintf("the live shards that servers other than %v hold", seen), elsewhere, want)
	}
	// Both are seen alive before the first load.
	sees([]string{"new", "old"}, nil)
	first := try(l.Live.LoadShard(ctx, c, id, live.Opener{Server: "old"})).must(t)
	// The new one follows the old one's journal, and takes over although the
	// old one runs.
	second := try(l.Live.LoadShard(ctx, c, id, live.Opener{Server: "new", Epoch: first.Epoch})).must(t)
	// A node that sees only the old server learns that the shard is held elsewhere.
	sees([]string{"old"}, nil, id)
	sees([]string{"new"}, nil)
	// A refused load must not raise the epoch: it would fence the holder's settler.
	before := f.totals(c, 0)
	refused := func(what string, by live.Opener) {
		t.Helper()
		wants(t, "a load by "+what, errOf(l.Live.LoadShard(ctx, c, id, by)), dibs.ErrElsewhere)
		wants(t, "a fence by "+what, errOf(l.Live.Fence(ctx, id, by, before)), dibs.ErrElsewhere)
		same(t, "the totals after a load by "+what, f.totals(c, 0), before)
	}
	refused("a server that lacks the epoch", live.Opener{Server: "old", Epoch: first.Epoch})
	refused("a server that is empty", live.Opener{Server: "empty"})
	refused("a process of its own", live.Opener{})

	// The holder itself was emptied, and goes on.
	third := try(l.Live.LoadShard(ctx, c, id, live.Opener{Server: "new"})).must(t)
	before = f.totals(c, 0)
	refused("the old server still", live.Opener{Server: "old", Epoch: second.Epoch})
	// At the holder's address another server answers.
	sees([]string{"old"}, []string{"new"}, id)
	fourth := try(l.Live.LoadShard(ctx, c, id, live.Opener{Server: "old", Epoch: first.Epoch})).must(t)
	if fourth.Epoch <= third.Epoch {
		t.Errorf("epoch %d after %d", fourth.Epoch, third.Epoch)
	}
	beyond := f.fence(id, live.Opener{Server: "old", Epoch: fourth.Epoch + 7})
	same(t, "an epoch beyond that of the journal", beyond.Epoch, fourth.Epoch+8)
}

// testTwoServers: two servers that are alive hold shards of live campaigns, and each lacks what the
// other one has. While one of them waits for nothing it keeps what it has; when both have waited for
// longer than dibs.ServerLife, the one with more shards gets the rest.
func testTwoServers(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("c", 30)
	c.Shards, c.EndsAt = 3, start.AddDate(100, 0, 0)
	f.insert(c)
	load := func(shard int, server string) error {
		f.must(errOf(l.Live.SeeServers(ctx, []string{"few", "many", "third"}, nil)))
		return errOf(l.Live.LoadShard(ctx, c, dibs.ShardID{Campaign: c.Number, Shard: uint8(shard)}, live.Opener{Server: server}))
	}
	f.must(load(0, "few"))
	f.must(load(1, "many"))
	f.must(load(2, "many"))
	for until := time.Now().Add(dibs.ServerLife + time.Second); time.Now().Before(until); wait.Sleep(ctx, 250*time.Millisecond) {
		wants(t, "many, while few waits for nothing", load(0, "many"), dibs.ErrElsewhere)
		wants(t, "one that holds nothing", load(1, "third"), dibs.ErrElsewhere)
	}
	wants(t, "few, which begins to wait", load(1, "few"), dibs.ErrElsewhere)
	f.must(load(0, "many"))
	wants(t, "few, which holds nothing now", load(0, "few"), dibs.ErrElsewhere)
	wants(t, "one that never held anything", load(1, "third"), dibs.ErrElsewhere)
}

// testSkipTo: what the journal has no more is given up once, and fences as a
// load does. An administrator does this when a ledger was restored and the
// journal no longer reaches back to its position. It must happen at the
// position that they saw, and in the epoch: another node may have opened the shard
// since.
func testSkipTo(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	f.settle(s)
	from, stale := s.last, f.totals(c, 0)
	before := f.fence(s.shard, live.Opener{})
	s.fence = before.Epoch
	s.grant("lost", 1)
	lost := s.batch()
	s.grant("u2", 1)
	// Each wrong place is refused before anything moves.
	elsewhere := live.ShardTotals{Epoch: before.Epoch, Position: s.last}
	for what, no := range map[string]struct {
		seen live.ShardTotals
		to   dibs.Cursor
	}{
		"a place that is not the position":          {elsewhere, dibs.Cursor{Epoch: s.last.Epoch, Seq: s.last.Seq + 1}},
		"a place before the position":               {before, dibs.Cursor{Epoch: from.Epoch, Seq: 1}},
		"what was seen before the epoch was raised": {stale, lost.To},
	} {
		wants(t, what, l.Audit.SkipTo(ctx, s.shard, no.seen, no.to), dibs.ErrPositionMoved)
		same(t, "the totals after "+what, f.totals(c, 0), before)
	}
	f.must(l.Audit.SkipTo(ctx, s.shard, before, lost.To))
	wants(t, "the same again", l.Audit.SkipTo(ctx, s.shard, before, lost.To), dibs.ErrPositionMoved)
	wants(t, "a batch that was read before", l.Live.Settle(ctx, []live.Batch{lost}), dibs.ErrFenced)
	after := f.totals(c, 0)
	if after.Epoch <= before.Epoch {
		t.Errorf("the epoch stays at %d", after.Epoch)
	}
	same(t, "the position", after.Position, lost.To)
	same(t, "what is left", after.StockLeft, before.StockLeft)
	s.fence = after.Epoch
	f.settle(s)
	same(t, "what is left after the next entry", f.totals(c, 0).StockLeft, int64(8))
	f.clean(c)
	none := dibs.ShardID{Campaign: c.Number + 1}
	wants(t, "a shard that does not exist", l.Audit.SkipTo(ctx, none, before, lost.To), dibs.ErrNotFound)
}

// fence raises a shard's epoch.
func (f *fixture) fence(id dibs.ShardID, by live.Opener) live.ShardTotals {
	f.t.Helper()
	ctx, l := f.t.Context(), f.ledger()
	seen := try(l.Live.Totals(ctx, id)).must(f.t)
	got := try(l.Live.Fence(ctx, id, by, seen)).must(f.t)
	return got
}
