package ledgertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// spread stores a campaign over several shards, and loads all of them.
func (f *fixture) spread(id string, shards int, stock int64) (c *dibs.Campaign, scripts []*script) {
	f.t.Helper()
	c = f.insert(inShards(shards, campaign(id, stock)))
	return c, f.loadAll(c, shards)
}

// stocks checks what each shard has, and that the campaign has their sum.
func (f *fixture) stocks(c *dibs.Campaign, want ...int64) {
	f.t.Helper()
	sum := int64(0)
	for i, n := range want {
		same(f.t, fmt.Sprintf("the stock left of shard %d", i), f.totals(c, uint8(i)).StockLeft, n)
		sum += n
	}
	same(f.t, "the audit's stock left", f.clean(c).StockLeft, sum)
}

// waiting lists the commands that wait in the outbox: shard, epoch, ref and units.
func (f *fixture) waiting() (all []string) {
	f.t.Helper()
	cmds := f.commands()
	for i := range cmds {
		a := &cmds[i].Adjust
		all = append(all, fmt.Sprintf("%d@%d %s %+d", cmds[i].Shard.Shard, a.Epoch, a.Ref, a.Delta))
	}
	return all
}

// testSpread restocks and withdraws a campaign as a whole: once by its ref, in parts
// that even the shards out. The parts are found by their refs.
func testSpread(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, scripts := f.spread("c", 3, 9)
	id := dibs.ShardID{Campaign: c.Number}
	scripts[1].grant("u", 3)
	f.settle(scripts[1])
	f.stocks(c, 3, 0, 3)
	for range 2 {
		f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: id, Spread: true, Ref: "r", Delta: 5}))
		f.stocks(c, 4, 4, 3)
	}
	f.changed(c, []int64{1, 4}, "r")
	same(t, "commands", f.waiting(), []string{"0@1 r +1", "1@1 r 1 +4"})
	refuses(t, "nothing", l.Campaigns.Restock(ctx, campaigns.Restock{Shard: id, Spread: true, Ref: "0"}))
	wants(t, "no such campaign", l.Campaigns.Restock(ctx, campaigns.Restock{Shard: dibs.ShardID{Campaign: 99}, Spread: true, Ref: "r", Delta: 1}), dibs.ErrNotFound)

	draft := campaign("draft", 10)
	draft.Shards, draft.State = 4, dibs.Draft
	f.insert(draft)
	take := func(ref string, n int64) error {
		return l.Campaigns.Restock(ctx, campaigns.Restock{Shard: dibs.ShardID{Campaign: draft.Number}, Spread: true, Ref: ref, Delta: n})
	}
	f.stocks(draft, 3, 3, 2, 2)
	f.must(take("less -", -5))
	f.stocks(draft, 2, 1, 1, 1)
	wants(t, "more than all have", take("too much -", -6), dibs.ErrInvalidState)
	f.must(take("one", 1))
	f.stocks(draft, 2, 2, 1, 1)
	f.must(take("all -", -6))
	f.stocks(draft, 0, 0, 0, 0)
}

// testTransfer settles transfers: the units leave the donor and join the recipient in
// one transaction, with the recipient's command; a repeat changes nothing; the
// campaign's own stock, its low mark and its feed do not notice. A load counts what a
// command carries, and what has moved.
func testTransfer(t *testing.T, f *fixture) {
	c, scripts := f.spread("c", 3, 30)
	out := dibs.Transfer{ID: "m-1", To: 2}
	scripts[0].adjust(out.Leaves(), -4)
	f.settle(scripts[0])
	f.stocks(c, 6, 10, 14)
	same(t, "commands", f.waiting(), []string{"2@1 " + out.Arrives() + " +4"})
	same(t, "news", newsText(must1(f.news(f.ledger(), 0, 100))), "")
	got := try(f.ledger().Live.Campaign(t.Context(), "c")).must(t)
	same(t, "the campaign's stock", got.Stock.Total, int64(30))

	// The journal has it twice: it counts once.
	scripts[0].adjust(out.Leaves(), -4)
	f.settle(scripts[0])
	f.stocks(c, 6, 10, 14)
	same(t, "commands", len(f.waiting()), 1)

	// Two in one batch, of one shard that also grants and withdraws.
	scripts[1].grant("u", 2)
	scripts[1].adjust(dibs.Transfer{ID: "m-2", To: 0}.Leaves(), -3)
	scripts[1].adjust("w -", -1)
	scripts[1].adjust(dibs.Transfer{ID: "m-3", To: 2}.Leaves(), -4)
	// Units that have arrived were counted when they left.
	scripts[2].adjust(out.Arrives(), 4)
	scripts[2].grant("v", 5)
	f.settle(scripts[2], scripts[1])
	f.stocks(c, 9, 0, 13)

	for shard, want := range []int64{1, 7, -8} {
		load, _ := f.load(c, uint8(shard))
		same(t, fmt.Sprintf("what has moved from shard %d", shard), load.Moved, want)
		// The shard has what the other shards lack.
		same(t, "and what is left of it", load.StockLeft, []int64{9, 0, 13}[shard])
	}
	same(t, "commands after the loads", len(f.waiting()), 0)
}

// testTransferItems settles a transfer of items: their rows move with them, and the
// command names their numbers and values. An item that is not free on the donor makes
// the batch fail.
func testTransferItems(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(inShards(2, campaign("c", 0)), values("v", 7)...)
	f.load(c, 1)
	// Shard 0 has the even numbers, shard 1 the odd ones.
	out := dibs.Transfer{ID: "m-1", To: 1}
	s.grant("u", 1, 0)
	s.adjust(out.Leaves(), -2, 4, 6)
	f.settle(s)
	cmds := f.commands()
	same(t, "commands", len(cmds), 1)
	same(t, "the command's items", cmds[0].Adjust.Items, []string{"v-4", "v-6"})
	same(t, "their numbers", cmds[0].Adjust.Numbers, []uint32{4, 6})
	f.stocks(c, 1, 5)
	bad := *s
	bad.entries = nil
	bad.adjust(dibs.Transfer{ID: "m-2", To: 1}.Leaves(), -1, 4)
	wants(t, "move an item that has left", l.Live.Settle(ctx, []live.Batch{bad.peek()}), dibs.ErrCorrupt)
	load, _ := f.load(c, 0)
	same(t, "free items of the donor", load.FreeItems, []uint32{2})
	load, next := f.load(c, 1)
	same(t, "free items of the recipient", load.FreeItems, []uint32{1, 3, 4, 5, 6})
	next.grant("w", 2, 6, 1)
	f.settle(next)
	f.stocks(c, 1, 3)

	// A restock as a whole gives each shard items of its own, under numbers that do not
	// follow one another.
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{
		Shard: dibs.ShardID{Campaign: c.Number}, Spread: true, Ref: "r", Delta: 4, Items: values("w", 4),
	}))
	f.stocks(c, 4, 4)
	cmds = f.commands()
	same(t, "the first part", fmt.Sprint(cmds[0].Adjust.Items, cmds[0].Adjust.Numbers), "[w-0 w-1 w-2] [7 8 9]")
	same(t, "the second part", fmt.Sprint(cmds[1].Adjust.Items, cmds[1].Adjust.Numbers), "[w-3] [10]")
	refuses(t, "too few items", l.Campaigns.Restock(ctx, campaigns.Restock{
		Shard: dibs.ShardID{Campaign: c.Number}, Spread: true, Ref: "few", Delta: 4, Items: values("x", 3),
	}))
}

// testImportSpread imports items into all shards of a campaign, one after the other,
// once: into a draft, whose first loads have them, and into shards that are open, which
// get them by commands with their numbers.
func testImportSpread(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("c", 0)
	c.Shards, c.State = 3, dibs.Draft
	f.insert(c, []string{}...)
	into := func(ref, prefix string, n int) int64 {
		in := importOf(c, ref, values(prefix, n))
		in.Spread = true
		return try(l.Campaigns.Import(ctx, in)).must(t)
	}
	same(t, "added", into("a", "v", 4), int64(4))
	same(t, "added by a repeat", into("a", "v", 4), int64(0))
	f.stocks(c, 2, 1, 1)
	for shard, want := range [][]uint32{{0, 3}, {1}, {2}} {
		load, _ := f.load(c, uint8(shard))
		same(t, "free items", load.FreeItems, want)
	}
	same(t, "added to open shards", into("b", "w", 2), int64(2))
	f.stocks(c, 3, 2, 1)
	cmds := f.commands()
	same(t, "commands", len(cmds), 2)
	for i, want := range []string{"0 [w-0] [4]", "1 [w-1] [5]"} {
		a := cmds[i].Adjust
		same(t, "a command", fmt.Sprint(cmds[i].Shard.Shard, " ", a.Items, " ", a.Numbers), want)
	}
	f.changed(c, []int64{1, 1, 1, 1, 2}, "a", "b")
}

// testTransferLost loses transfers at each step. Where the donor's engine lost the
// withdrawal before it was settled, the units are with the donor, and no later batch
// of the old epoch moves them. Where it was settled, they are with the recipient,
// whatever the donor's engine has.
func testTransferLost(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, scripts := f.spread("c", 2, 20)
	lost := dibs.Transfer{ID: "m-lost", To: 1}
	scripts[0].adjust(lost.Leaves(), -5)
	// The donor fails over: its next epoch is loaded from the ledger.
	load, next := f.load(c, 0)
	same(t, "left of the donor", load.StockLeft, int64(10))
	same(t, "what has moved", load.Moved, int64(0))
	wants(t, "settle the old epoch's batch", l.Live.Settle(ctx, []live.Batch{scripts[0].peek()}), dibs.ErrFenced)
	f.stocks(c, 10, 10)
	same(t, "commands", len(f.waiting()), 0)
	f.changed(c, nil, lost.Leaves(), lost.Arrives())

	// Settled, and then lost by the donor: the next load has the smaller stock. The
	// recipient is loaded before the command is sent, in a later epoch.
	kept := dibs.Transfer{ID: "m-kept", To: 1}
	next.adjust(kept.Leaves(), -5)
	f.settle(next)
	load, _ = f.load(c, 0)
	same(t, "left of the donor", load.StockLeft, int64(5))
	same(t, "refs of the donor", load.Refs, []string{kept.Leaves()})
	same(t, "commands", f.waiting(), []string{"1@1 " + kept.Arrives() + " +5"})
	load, _ = f.load(c, 1)
	same(t, "left of the recipient", load.StockLeft, int64(15))
	same(t, "refs of the recipient", load.Refs, []string{})
	same(t, "commands after its load", len(f.waiting()), 0)
	f.stocks(c, 5, 15)

	// A recipient that no engine has opened needs no command: its first load counts.
	d, s := f.loaded(inShards(2, campaign("d", 20)))
	s.adjust(kept.Leaves(), -10)
	f.settle(s)
	same(t, "commands to a shard that was never opened", len(f.waiting()), 0)
	load, _ = f.load(d, 1)
	same(t, "left of the recipient", load.StockLeft, int64(20))
	same(t, "what has moved there", load.Moved, int64(-10))
}

// testTransferAhead settles a transfer before the grants that stand before it in the journal:
// the recipient has the units at once, the position stays, and neither a repeat nor the entry
// itself, nor a load, moves them again. Under another epoch nothing is settled, and to no
// shard.
func testTransferAhead(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, scripts := f.spread("c", 3, 30)
	donor, out := scripts[0], dibs.Transfer{ID: "m-1", To: 2}
	donor.grant("u", 4)
	donor.adjust(out.Leaves(), -6)
	settled := f.totals(c, 0).Position
	for _, epoch := range []uint16{0, 2} {
		wants(t, fmt.Sprintf("settle it ahead in epoch %d", epoch), l.Live.SettleTransfer(ctx, donor.shard, epoch, out, 6), dibs.ErrFenced)
	}
	wants(t, "settle ahead to no shard", l.Live.SettleTransfer(ctx, donor.shard, 1, dibs.Transfer{ID: "m-0", To: 3}, 1), dibs.ErrCorrupt)
	wants(t, "settle ahead from no shard", l.Live.SettleTransfer(ctx, dibs.ShardID{Campaign: c.Number, Shard: 9}, 1, out, 1), dibs.ErrNotFound)
	refuses(t, "more than is left", l.Live.SettleTransfer(ctx, donor.shard, 1, dibs.Transfer{ID: "m-0", To: 1}, 11))
	f.stocks(c, 10, 10, 10)
	for range 2 {
		f.must(l.Live.SettleTransfer(ctx, donor.shard, 1, out, 6))
		f.stocks(c, 4, 10, 16)
	}
	same(t, "the position", f.totals(c, 0).Position, settled)
	same(t, "commands", f.waiting(), []string{"2@1 " + out.Arrives() + " +6"})
	same(t, "news", newsText(must1(f.news(f.ledger(), 0, 100))), "")
	f.settle(donor)
	f.stocks(c, 0, 10, 16)
	same(t, "commands after its turn", f.waiting(), []string{"2@1 " + out.Arrives() + " +6"})

	// The tail of the journal is lost, and the entry with it: the donor's next load has the
	// smaller stock all the same.
	lost := dibs.Transfer{ID: "m-2", To: 0}
	scripts[1].adjust(lost.Leaves(), -7)
	f.must(l.Live.SettleTransfer(ctx, scripts[1].shard, 1, lost, 7))
	load, _ := f.load(c, 1)
	same(t, "left of the donor", load.StockLeft, int64(3))
	same(t, "refs of the donor", load.Refs, []string{lost.Leaves()})
	same(t, "what has moved", load.Moved, int64(7))
	// The ledger went back to before a transfer that the recipient's engine has been told of:
	// what was granted of it waits until the donor's journal brings the ledger's half.
	gone := dibs.Transfer{ID: "m-3", To: 2}
	scripts[2].adjust(gone.Arrives(), 3)
	for _, user := range []string{"v", "w", "x", "y", "z", "a"} {
		scripts[2].grant(user, 3)
	}
	wants(t, "settle what has not left", l.Live.Settle(ctx, []live.Batch{scripts[2].peek()}), live.ErrNotLeft)
	scripts[0].adjust(gone.Leaves(), -3)
	f.settle(scripts[0], scripts[2])
	f.stocks(c, 4, 3, 1)
	strange := *scripts[2]
	strange.adjust(dibs.Transfer{ID: "m-lost", To: 2}.Arrives(), 1)
	b := strange.peek()
	b.UnknownTransfers = true
	f.must(l.Live.Settle(ctx, []live.Batch{b}))
	f.stocks(c, 4, 3, 1)
	wants(t, "settle it once more, in the epoch before", l.Live.SettleTransfer(ctx, scripts[1].shard, 1, lost, 7), dibs.ErrFenced)
	f.stocks(c, 4, 3, 1)
}

// testTransferRefused refuses transfers that cannot be: to a shard that the campaign
// does not have, and of more than is left. Nothing of the batch is written.
func testTransferRefused(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, scripts := f.spread("c", 2, 20)
	for _, move := range []struct {
		to    uint8
		units int64
	}{{2, 1}, {1, 11}} {
		s := *scripts[0]
		s.entries = nil
		s.grant("u", 1)
		s.adjust(dibs.Transfer{ID: "m-1", To: move.to}.Leaves(), -move.units)
		wants(t, fmt.Sprintf("move %d to shard %d", move.units, move.to), l.Live.Settle(ctx, []live.Batch{s.peek()}), dibs.ErrPoison)
	}
	f.stocks(c, 10, 10)
	same(t, "commands", len(f.waiting()), 0)
}

// testTransferQuarantine sets a transfer aside that cannot be settled, and settles it
// later. In between its units are nobody's, and the load says that they have left.
func testTransferQuarantine(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, scripts := f.spread("c", 2, 20)
	s := scripts[0]
	s.grant("u", 4)
	out := dibs.Transfer{ID: "m-1", To: 1}
	s.adjust(out.Leaves(), -8)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	at := dibs.Position{ShardID: s.shard, Cursor: s.last}
	f.stocks(c, 0, 10)
	load, next := f.load(c, 0)
	same(t, "left of the donor", load.StockLeft, int64(0))
	same(t, "what has moved", load.Moved, int64(8))
	f.settle(next)
	wants(t, "settle it while there is too little", l.Audit.Readmit(ctx, c, at), dibs.ErrPoison)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 3}))
	f.must(l.Audit.Readmit(ctx, c, at))
	f.stocks(c, 1, 18)
	same(t, "entries in quarantine at the end", f.clean(c).Quarantined, int64(0))
	same(t, "commands", f.waiting(), []string{"0@2 r +3", "1@1 " + out.Arrives() + " +8"})
	load, _ = f.load(c, 0)
	same(t, "what has moved at the end", load.Moved, int64(8))
}

// testTransferRace settles transfers of many shards to each other from three nodes at
// once, each batch from two of them: each transfer counts once, and nodes that wait
// for each other's rows end.
func testTransferRace(t *testing.T, f *fixture) {
	const shards, moves = 6, 8
	c, scripts := f.spread("c", shards, 600)
	ledgers := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	var batches []live.Batch
	for i, s := range scripts {
		for n := range moves {
			s.adjust(dibs.Transfer{ID: fmt.Sprintf("m-%d-%d", i, n), To: uint8((i + 1 + n%(shards-1)) % shards)}.Leaves(), -2)
			s.grant(fmt.Sprintf("u-%d-%d", i, n), 1)
		}
		batches = append(batches, s.batch())
	}
	f.together(len(ledgers), func(i int) (failed error) {
		for n := range batches {
			// Two batches in one transaction, in the order in which the node comes to them.
			both := []live.Batch{batches[(n*5+i)%shards], batches[(n*5+i+1)%shards]}
			if err := ledgers[i].Live.Settle(t.Context(), both); err != nil {
				for _, b := range both {
					err := ledgers[i].Live.Settle(t.Context(), []live.Batch{b})
					if err != nil && !errors.Is(err, dibs.ErrPositionMoved) {
						failed = errors.Join(failed, err)
					}
				}
			}
		}
		return failed
	})
	same(t, "the audit's stock", f.clean(c).Stock, int64(600))
	same(t, "units held", f.clean(c).Held, int64(shards*moves))
	same(t, "commands", len(f.waiting()), shards*moves)
}
