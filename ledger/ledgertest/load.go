package ledgertest

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// testItems refuses a list that has an item twice, by the place of the second
// one, and stores nothing of it. Two campaigns may have the same item. An admin
// who uploads ten thousand codes has to learn which line is wrong, and that
// none was stored.
func testItems(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := campaign("dup", 3)
	c.Stock.Kind = dibs.Items
	err := l.Campaigns.InsertCampaign(ctx, c, []string{"A1", "A2", "A1"})
	wants(t, "a list that has an item twice", err, dibs.ErrInvalid)
	var said *dibs.Error
	if errors.As(err, &said) && (len(said.Faults) != 1 || said.Faults[0].Field != "/stock/items/2") {
		t.Errorf("the faults are %+v, want one at /stock/items/2", said.Faults)
	}
	wants(t, "the campaign that was refused", errOf(l.Live.Campaign(ctx, "dup")), dibs.ErrNotFound)

	// The same value may be in two campaigns.
	f.insert(campaign("a", 0), "A1")
	f.insert(campaign("b", 0), "A1")
}

// testShards divides stock among shards as evenly as possible, the first ones
// getting more, and deals items in turns. A shard cannot sell the stock of
// another one, so an uneven split turns users away while stock is left.
func testShards(t *testing.T, f *fixture) {
	c := f.insert(inShards(4, campaign("units", 11)))
	d := f.insert(inShards(4, campaign("items", 0)), values("v", 11)...)
	var units, items []int64
	var free [][]uint32
	for shard := range uint8(4) {
		load, _ := f.load(c, shard)
		units = append(units, load.StockLeft)
		same(t, "the shard's stock", f.totals(c, shard).Stock, load.StockLeft)
		load, _ = f.load(d, shard)
		items = append(items, load.StockLeft)
		free = append(free, load.FreeItems)
	}
	// 11 = 3 + 3 + 3 + 2.
	same(t, "units of the shards", units, []int64{3, 3, 3, 2})
	same(t, "items of the shards", items, []int64{3, 3, 3, 2})
	same(t, "free items of the shards", free, [][]uint32{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7}})
	f.clean(c)
	f.clean(d)
}

// testLoadShard loads a shard with what was settled: position, stock left,
// withdrawals that the engine must not repeat, and the holdings in the order of
// their places. An engine has nothing but this load and its journal's tail: a
// holding that is missing is a yes that no repeat finds, and a withdrawal that
// is missing is taken twice.
func testLoadShard(t *testing.T, f *fixture) {
	c := campaign("c", 10)
	c.PayWithin = 1_000_000_000
	f.insert(c)
	load, s := f.load(c, 0)
	if load.Epoch == 0 || load.Items != nil || load.FreeItems != nil {
		t.Errorf("the first load is %+v", load)
	}
	first := s.grant("u1", 2)
	s.grant("u2", 1)
	// Release and restock are entries of moves that the ledger would have made
	// first; here it did not, and so they must move nothing: 10 - 2 - 1 - 3 = 4.
	s.release(first.Cursor, 2)
	s.adjust("w1", -3)
	s.adjust("r1", 5)
	f.settle(s)

	load, _ = f.load(c, 0)
	same(t, "the position", load.Position, s.from)
	same(t, "the stock left", load.StockLeft, int64(4))
	same(t, "the settled withdrawals", load.Refs, []string{"w1"})
	same(t, "holdings", len(load.Holdings), 2)
	same(t, "the first holding", load.Holdings[0], dibs.Holding{
		Cursor: first.Cursor, UserID: "u1", Key: uint64(1)<<63 | uint64(first.Seq), Quantity: 2,
		At: start.UnixMilli() + int64(first.Seq), PayBy: start.UnixMilli() + 1000,
	})
	if !load.Holdings[0].Before(load.Holdings[1].Cursor) {
		t.Error("the holdings are not in the order of their places")
	}
}

// testLoadItems loads all items of a campaign, by their numbers, with those of
// the shard that are free: neither held nor withdrawn. Items are numbered for a
// whole campaign, and the engine looks values up by number, so the list has no
// holes for items that are taken.
func testLoadItems(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 0), values("v", 8)...)
	s.grant("u1", 2, 0, 1)
	s.grant("u2", 1, 5)
	s.adjust("w", -2, 3, 7)
	f.settle(s)
	load, _ := f.load(c, 0)
	same(t, "the items", load.Items, values("v", 8))
	same(t, "the free items", load.FreeItems, []uint32{2, 4, 6})
	same(t, "the stock left", load.StockLeft, int64(3))
	var held [][]uint32
	for _, h := range load.Holdings {
		held = append(held, h.Items)
	}
	same(t, "the items held", held, [][]uint32{{0, 1}, {5}})
	f.clean(c)
}

// testLoadUnknown loads shards that do not exist, of a campaign that is there
// and of one that is not.
func testLoadUnknown(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 10))
	for _, id := range []dibs.ShardID{{Campaign: c.Number, Shard: 1}, {Campaign: c.Number + 1}} {
		wants(t, "load a shard that does not exist",
			errOf(f.ledger().Live.LoadShard(t.Context(), c, id, live.Opener{})), dibs.ErrNotFound)
		wants(t, "totals of a shard that does not exist",
			errOf(f.ledger().Live.Totals(t.Context(), id)), dibs.ErrNotFound)
	}
}

// testEpochs loads a shard again and again: each load has a higher epoch, which
// the totals show. An epoch that is given twice would give two claims the same
// place, and so the same id.
func testEpochs(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 10))
	var last uint16
	for range 5 {
		load, _ := f.load(c, 0)
		if load.Epoch <= last {
			t.Fatalf("epoch %d after %d", load.Epoch, last)
		}
		last = load.Epoch
		same(t, "the epoch in the totals", f.totals(c, 0).Epoch, last)
	}
}
