package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// changed checks what the ledger has of stock changes by refs. The refs of
// restocks and withdrawals share one list for each campaign.
func (f *fixture) changed(c *dibs.Campaign, want []int64, refs ...string) {
	f.t.Helper()
	var made []int64
	for _, ref := range refs {
		under := try(f.ledger().Campaigns.StockChanges(f.t.Context(), c.Number, ref)).must(f.t)
		made = append(made, under...)
	}
	slices.Sort(made)
	same(f.t, fmt.Sprint("stock changes by ", refs), made, want)
}

// testWithdraw settles withdrawals, of units and of items, once by their ref.
// More than is left is refused by the database, an item that is held as
// corrupt. Refs belong to a campaign. A withdrawal is the engine's decision,
// and the ledger learns of it here.
func testWithdraw(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 2)
	// The engine takes stock and journals that in one step; settling moves it here.
	s.adjust("w1", -3)
	f.settle(s)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: s.last, Epoch: s.last.Epoch, Stock: 7, StockLeft: 5, Confirmed: 2,
	})
	same(t, "the campaign's stock", try(l.Live.Campaign(ctx, "c")).must(t).Stock.Total, int64(7))
	f.changed(c, []int64{-3}, "w1")

	s.adjust("w1", -3)
	f.settle(s)
	same(t, "stock left after a repeat", f.totals(c, 0).StockLeft, int64(5))
	s.adjust("w2", -6)
	refuses(t, "withdraw more than is left", l.Live.Settle(ctx, []live.Batch{s.peek()}))
	same(t, "the audit's stock", f.clean(c).Stock, int64(7))

	// The engine chose items 1 and 4: exactly these are gone from the free ones.
	d, s := f.loaded(campaign("d", 0), values("v", 5)...)
	s.adjust("w", -2, 1, 4)
	s.grant("u1", 1, 0)
	f.settle(s)
	load, _ := f.load(d, 0)
	same(t, "free items", load.FreeItems, []uint32{2, 3})
	// Item 0 belongs to u1's claim by now: the engine's history is not the
	// ledger's.
	bad := *s
	bad.entries = nil
	bad.adjust("w3", -1, 0)
	wants(t, "withdraw an item that is held", l.Live.Settle(ctx, []live.Batch{bad.peek()}), dibs.ErrCorrupt)
	same(t, "the audit's stock", f.clean(d).Stock, int64(3))

	// Refs are a campaign's own.
	e, s := f.loaded(campaign("e", 10))
	s.adjust("w1", -4)
	f.settle(s)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r1", Delta: 1}))
	f.changed(e, []int64{-4, 1}, "none", "r1", "w1")
	f.changed(c, []int64{-3}, "none", "r1", "w1")

	// A ref that another one begins with is not a part of it.
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r1!", Delta: 2}))
	f.changed(e, []int64{1}, "r1", "r", "w")
}

// testWithdrawFromDraft takes stock from shards that no engine has opened:
// twice, and all that is left. Without an engine the ledger decides by itself,
// and keeps the order of items: it takes from the end. A repeat by the same ref
// takes nothing.
func testWithdrawFromDraft(t *testing.T, f *fixture) {
	draft := func(id string, stock int64) *dibs.Campaign {
		c := campaign(id, stock)
		c.State = dibs.Draft
		return c
	}
	take := func(c *dibs.Campaign, ref string, n int64) error {
		return f.ledger().Campaigns.Restock(t.Context(), campaigns.Restock{Shard: dibs.ShardID{Campaign: c.Number}, Ref: ref, Delta: -n})
	}
	units := f.insert(draft("units", 5))
	f.must(take(units, "w1", 2))
	wants(t, "withdraw more than is left", take(units, "w2", 4), dibs.ErrInvalidState)
	f.must(take(units, "w3", 3))
	same(t, "units left", f.totals(units, 0), live.ShardTotals{})
	same(t, "the audit's units", f.clean(units).Stock, int64(0))

	items := f.insert(draft("items", 0), values("v", 5)...)
	// The repeat by the same ref takes nothing.
	for range 2 {
		f.must(take(items, "w1", 2))
	}
	f.must(take(items, "w2", 1))
	load, _ := f.load(items, 0)
	same(t, "free items after two withdrawals", load.FreeItems, []uint32{0, 1})
	same(t, "the audit's items", f.clean(items).Stock, int64(2))

	all := f.insert(draft("all", 0), values("v", 3)...)
	f.must(take(all, "w1", 3))
	load, _ = f.load(all, 0)
	same(t, "free items after all were withdrawn", len(load.FreeItems), 0)
	same(t, "the audit's items", f.clean(all).Stock, int64(0))
}

// testRestock restocks once by its ref: the ledger counts it at once, one
// command tells the engine, the engine's entry of it moves nothing, and a load
// counts it and drops the command. The ledger moves first, so that a crash
// leaves the engine with less than the ledger, never with more. The command
// carries the epoch in which it was counted.
func testRestock(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	load, s := f.load(c, 0)
	id := dibs.ShardID{Campaign: c.Number}
	r := campaigns.Restock{Shard: id, Ref: "r1", Delta: 5, Why: "more"}
	f.changed(c, nil, "r1")
	// An admin's request that is sent again is the same restock.
	for range 3 {
		f.must(l.Campaigns.Restock(ctx, r))
	}
	f.changed(c, []int64{5}, "r1")
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Epoch: load.Epoch, Stock: 15, StockLeft: 15})
	// What was counted from another stock than there is changes nothing.
	counted := campaigns.Restock{Shard: id, Ref: "r2", Delta: 5, Of: new(int64(10))}
	wants(t, "a change that was counted from another stock", l.Campaigns.Restock(ctx, counted), dibs.ErrConflict)
	same(t, "the campaign's stock", try(l.Live.Campaign(ctx, "c")).must(t).Stock.Total, int64(15))
	cmds := f.commands()
	same(t, "commands", len(cmds), 1)
	same(t, "the command", cmds[0].Adjust, dibs.Adjustment{Shard: id, Epoch: load.Epoch, Ref: "r1", Delta: 5})

	// The engine's entry of it moves nothing.
	s.adjust("r1", 5)
	s.grant("u1", 4)
	f.settle(s)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(11))

	// A load counts what waits, and drops it.
	load, _ = f.load(c, 0)
	same(t, "stock left in the load", load.StockLeft, int64(11))
	same(t, "commands after the load", len(f.commands()), 0)
	same(t, "the audit's stock", f.clean(c).Stock, int64(15))
}

// testRestockItems restocks items of one shard: they get the next numbers, the
// command carries them, and the load of that shard alone has them. Two shards
// of one campaign must not be given one item.
func testRestockItems(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(inShards(2, campaign("c", 0)), values("v", 5)...)
	_, s := f.load(c, 1)
	f.load(c, 0)
	id := dibs.ShardID{Campaign: c.Number, Shard: 1}
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: id, Ref: "r", Delta: 3, Items: values("w", 3)}))
	cmds := f.commands()
	same(t, "commands", len(cmds), 1)
	same(t, "the command", cmds[0].Adjust, dibs.Adjustment{
		Shard: id, Epoch: s.last.Epoch, Ref: "r", Delta: 3, FirstItem: 5, Items: values("w", 3),
	})
	// One of the new items and one of those dealt to this shard at first.
	s.grant("u1", 2, 6, 3)
	f.settle(s)

	load, _ := f.load(c, 1)
	same(t, "all items", load.Items, append(values("v", 5), values("w", 3)...))
	same(t, "free items of the shard", load.FreeItems, []uint32{1, 5, 7})
	load, _ = f.load(c, 0)
	same(t, "free items of the other shard", load.FreeItems, []uint32{0, 2, 4})
	same(t, "the audit's stock", f.clean(c).Stock, int64(8))
}

// testRestockRefused restocks what must be refused: items that are there, or
// twice, with the place of each, units for items and items for units, nothing,
// an unknown shard. The faults name each place, since the admin has to correct
// the list.
func testRestockRefused(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	units := f.insert(campaign("units", 10))
	items := f.insert(campaign("items", 0), values("v", 5)...)
	of := func(c *dibs.Campaign, r campaigns.Restock) error {
		r.Shard.Campaign = c.Number
		return l.Campaigns.Restock(ctx, r)
	}
	err := of(items, campaigns.Restock{Ref: "r", Delta: 4, Items: []string{"a", "v-3", "b", "a"}})
	wants(t, "items that are there", err, dibs.ErrInvalid)
	var said *dibs.Error
	var fields []string
	if errors.As(err, &said) {
		for _, fault := range said.Faults {
			fields = append(fields, fault.Field)
		}
	}
	same(t, "the fields at fault", fields, []string{"/items/1", "/items/3"})
	// The kind of the stock was decided when the campaign was made.
	wants(t, "items for a stock of units", of(units, campaigns.Restock{Ref: "r", Delta: 1, Items: []string{"a"}}), dibs.ErrInvalid)
	wants(t, "units for a stock of items", of(items, campaigns.Restock{Ref: "r", Delta: 1}), dibs.ErrInvalid)
	wants(t, "nothing", of(units, campaigns.Restock{Ref: "r"}), dibs.ErrInvalid)
	wants(t, "an unknown shard", of(units, campaigns.Restock{Ref: "r", Delta: 1, Shard: dibs.ShardID{Shard: 9}}), dibs.ErrNotFound)
	f.changed(items, nil, "r")
	same(t, "stock", f.clean(items).Stock, int64(5))
	f.clean(units)
}

// testRestockRace makes one restock from many sides: it counts once, and leaves
// one command. Two commands for one restock would give the engine stock that
// the ledger has not.
func testRestockRace(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 10))
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	r := campaigns.Restock{Shard: dibs.ShardID{Campaign: c.Number}, Ref: "r", Delta: 5}
	f.together(16, func(i int) error { return ledgers[i%2].Campaigns.Restock(t.Context(), r) })
	same(t, "the stock", f.clean(c).Stock, int64(15))
	same(t, "commands", len(f.commands()), 1)
}

// testCommands lists commands oldest first, after one of them and at most so
// many. Dropping twice is harmless, and a load drops those of its shard alone.
// The order matters: a later restock numbers its items after those of an
// earlier one.
func testCommands(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(inShards(2, campaign("c", 10)))
	for i := range 5 {
		f.must(l.Campaigns.Restock(ctx, campaigns.Restock{
			Shard: dibs.ShardID{Campaign: c.Number, Shard: uint8(i % 2)}, Ref: fmt.Sprintf("r%d", i), Delta: 1,
		}))
	}
	refs := func(max int) (refs []string, cmds []live.Command) {
		cmds = try(l.Live.Commands(ctx, 0, max)).must(t)
		for _, cmd := range cmds {
			refs = append(refs, cmd.Adjust.Ref)
		}
		return refs, cmds
	}
	got, cmds := refs(3)
	same(t, "the oldest commands", got, []string{"r0", "r1", "r2"})
	after := try(l.Live.Commands(ctx, cmds[1].ID, 2)).must(t)
	same(t, "the commands after the second", []string{after[0].Adjust.Ref, after[1].Adjust.Ref}, []string{"r2", "r3"})
	// Two nodes may have carried out the same command.
	f.must(l.Live.DropCommands(ctx, cmds[1:2]))
	f.must(l.Live.DropCommands(ctx, cmds[1:2]))
	got, _ = refs(10)
	same(t, "commands after one was dropped", got, []string{"r0", "r2", "r3", "r4"})
	// Shard 0 has the commands r0, r2 and r4: its load counts and drops them.
	f.load(c, 0)
	got, _ = refs(10)
	same(t, "commands after a load of the other shard", got, []string{"r3"})
}
