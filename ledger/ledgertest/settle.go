package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// testSettle settles grants: the claim has what the entry says, its amount is
// the price times the quantity, and position and sums have moved with it. An
// empty batch changes nothing. The status is Confirmed, since the campaign has
// no time to pay.
func testSettle(t *testing.T, f *fixture) {
	c := campaign("c", 100)
	c.Price = &dibs.Money{Amount: 250, Currency: "CNY"}
	_, s := f.loaded(c)
	p := s.grant("u1", 3)
	f.settle(s)
	got := try(f.ledger().Claims.Claim(t.Context(), p)).must(t)
	same(t, "the amount", *got.Amount, dibs.Money{Amount: 750, Currency: "CNY"})
	got.Amount = nil
	same(t, "the claim", *got, dibs.Claim{
		Position: p, UserID: "u1", Quantity: 3, Status: dibs.Confirmed, OrderType: dibs.FlashOrder,
		CreatedAt: start.Add(time.Duration(p.Seq) * time.Millisecond),
		UpdatedAt: start.Add(time.Duration(p.Seq) * time.Millisecond),
	})
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: p.Cursor, Epoch: p.Epoch, Stock: 100, StockLeft: 97, Confirmed: 3,
	})

	// Nothing new is settled without harm, and the position continues.
	f.settle(s)
	s.grant("u2", 1)
	f.settle(s)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(96))
	a := f.clean(c)
	same(t, "the audit", *a, audit.CampaignAudit{
		Stock: 100, StockLeft: 96, Held: 4, Claims: 2, ByStatus: map[string]int64{"confirmed": 4},
		SumHeld: 4, SumsAgree: true,
	})
}

// testSettleKinds settles entries of every kind. Releases and restocks move no
// sum: the ledger moved them when it made them. A later epoch continues where
// the one before ended.
func testSettleKinds(t *testing.T, f *fixture) {
	c := campaign("c", 10)
	c.PayWithin = 15 * time.Minute
	_, s := f.loaded(c)
	p := s.grant("u1", 2)
	s.release(p.Cursor, 2)
	s.adjust("restock", 4)
	f.settle(s)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{
		Position: s.last, Epoch: p.Epoch, Stock: 10, StockLeft: 8, Pending: 2,
	})
	got := try(f.ledger().Claims.Claim(t.Context(), p)).must(t)
	same(t, "the status", got.Status, dibs.Pending)
	same(t, "the deadline", got.PayBy, start.Add(15*time.Minute))

	// A later epoch continues where the one before ended.
	load, _ := f.load(c, 0)
	s.reopen(load.Epoch)
	q := s.grant("u2", 1)
	f.settle(s)
	same(t, "the position after the next epoch's entries", f.totals(c, 0).Position, q.Cursor)
	f.clean(c)
}

// testSettleItems settles grants of items in any order: a claim has exactly
// those that its entry names, in the order of their numbers. The bulk statement
// that gives items to claims must not depend on their order.
func testSettleItems(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 0), values("v", 300)...)
	var at []dibs.Position
	for i := range uint32(140) {
		at = append(at, s.grant(fmt.Sprintf("u%d", i), 2, 299-2*i, 298-2*i))
	}
	f.settle(s)
	got := try(f.ledger().Claims.Claim(t.Context(), at[7])).must(t)
	same(t, "the claim's items", got.Items, []string{"v-284", "v-285"})
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(20))
	f.clean(c)
}

// testSettleMany crosses every size of statement, several epochs in a batch and
// several shards in a transaction. Databases bound the number of parameters of
// a statement, and a ledger that splits its rows must not drop or repeat one at
// a border.
func testSettleMany(t *testing.T, f *fixture) {
	c := f.insert(inShards(2, campaign("c", 20_000)))
	var scripts []*script
	for shard := range uint8(2) {
		_, s := f.load(c, shard)
		for range 2 {
			for i := range 777 {
				s.grant(fmt.Sprintf("u%d-%d", shard, i), 1+int64(i%2))
			}
			// The next epoch's opening goes into the same batch, between the grants. The
			// fence becomes the new epoch.
			load, _ := f.load(c, shard)
			s.reopen(load.Epoch)
		}
		scripts = append(scripts, s)
	}
	f.settle(scripts...)
	a := f.clean(c)
	same(t, "claims", a.Claims, int64(4*777))
	same(t, "units held", a.Held, int64(4*(777+388)))
	for shard, s := range scripts {
		load, _ := f.load(c, uint8(shard))
		same(t, "holdings", len(load.Holdings), 2*777)
		same(t, "the position", load.Position, s.last)
	}
}

// testSettleTwice settles a batch again, alone and beside itself:
// ErrPositionMoved, and nothing changes. A settler whose answer was lost sends
// its batch again; a second copy of its claims would be sold stock that nobody
// took.
func testSettleTwice(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	b := s.batch()
	f.must(f.ledger().Live.Settle(t.Context(), []live.Batch{b}))
	before := f.totals(c, 0)
	wants(t, "the same batch again", f.ledger().Live.Settle(t.Context(), []live.Batch{b}), dibs.ErrPositionMoved)
	// Neither of the two may be taken.
	wants(t, "the same batch twice in one call", f.ledger().Live.Settle(t.Context(), []live.Batch{b, b}), dibs.ErrPositionMoved)
	same(t, "the totals after a replay", f.totals(c, 0), before)
	f.clean(c)
}

// testSettleGaps settles batches whose entries do not follow one another in one
// of nine ways. Each is ErrGap, so that a lost entry is never passed over, and
// changes nothing. The check is of the entries themselves, before the database
// is asked: a batch that fits the position at its ends may have a hole in the
// middle.
func testSettleGaps(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 1)
	s.grant("u2", 1)
	good := s.peek()
	for what, spoil := range map[string]func(*live.Batch){
		"an entry is missing":             func(b *live.Batch) { b.Entries = append(b.Entries[:1:1], b.Entries[2:]...) },
		"the opening is missing":          func(b *live.Batch) { b.Entries = b.Entries[1:] },
		"the end is missing":              func(b *live.Batch) { b.Entries = b.Entries[:2] },
		"an entry comes twice":            func(b *live.Batch) { b.Entries[2] = b.Entries[1] },
		"the epoch changes unopened":      func(b *live.Batch) { b.Entries[2].Epoch++; b.To.Epoch++ },
		"the opening follows another":     func(b *live.Batch) { b.Entries[0].Prev = dibs.Cursor{Epoch: 1, Seq: 9} },
		"the opening is not the first":    func(b *live.Batch) { b.Entries[0].Seq = 2 },
		"the opening is of an old epoch":  func(b *live.Batch) { b.From = dibs.Cursor{Epoch: b.To.Epoch, Seq: 7} },
		"the target is past the last one": func(b *live.Batch) { b.To.Seq++ },
	} {
		b := s.peek()
		spoil(&b)
		wants(t, what, f.ledger().Live.Settle(t.Context(), []live.Batch{b}), dibs.ErrGap)
	}
	same(t, "stock left after refusals", f.totals(c, 0).StockLeft, int64(10))
	f.must(f.ledger().Live.Settle(t.Context(), []live.Batch{good}))
	f.clean(c)
}

// testSettleAllOrNothing makes the second of two shards fail. Several shards
// share a transaction. One of them that another node has settled meanwhile must
// not leave half of the others written; the service settles those again.
func testSettleAllOrNothing(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 10))
	d := f.insert(campaign("d", 10))
	s.grant("u1", 1)
	_, moved := f.load(d, 0)
	moved.grant("u2", 1)
	b := moved.peek()
	// This moves the second shard's position past the batch kept above.
	f.settle(moved)
	err := f.ledger().Live.Settle(t.Context(), []live.Batch{s.peek(), b})
	wants(t, "a batch beside one that moved", err, dibs.ErrPositionMoved)
	same(t, "the totals of the batch beside it", f.totals(c, 0), live.ShardTotals{Epoch: s.last.Epoch, Stock: 10, StockLeft: 10})
	// Alone, the good batch settles: nothing of it was written before.
	f.settle(s)
	f.clean(c)
	f.clean(d)
}

// testSettleRefusesOversell plants entries that grant more than there is: the
// database itself has to refuse them. A check in the program alone would not
// hold against a second writer.
func testSettleRefusesOversell(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 3))
	s.grant("u1", 2)
	s.grant("u2", 2)
	refuses(t, "settle an oversold batch", f.ledger().Live.Settle(t.Context(), []live.Batch{s.peek()}))
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Epoch: s.last.Epoch, Stock: 3, StockLeft: 3})
	same(t, "claims", f.clean(c).Claims, int64(0))
}

// testSettleRefusesTakenItem plants an item that is granted twice, and one that
// does not exist. In each case the item beside it is good, and must stay free:
// the transaction leaves nothing behind.
func testSettleRefusesTakenItem(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 0), values("v", 10)...)
	s.grant("u1", 1, 4)
	f.settle(s)
	for what, items := range map[string][]uint32{
		"an item that is taken": {5, 4}, "an item that does not exist": {5, 10}, "an item twice": {5, 5},
	} {
		// A copy of the script adds the bad entry, so s can settle the right one at the
		// same place later.
		bad := *s
		bad.entries = nil
		bad.grant("u2", 2, items...)
		refuses(t, what, f.ledger().Live.Settle(t.Context(), []live.Batch{bad.peek()}))
	}
	// A claim of two units with one item contradicts itself, whatever the database
	// has.
	short := *s
	short.entries = nil
	short.grant("u2", 2, 5)
	wants(t, "fewer items than the quantity", f.ledger().Live.Settle(t.Context(), []live.Batch{short.peek()}), dibs.ErrCorrupt)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(9))
	s.grant("u2", 2, 5, 6)
	f.settle(s)
	f.clean(c)
}

// testSettleRace lets settlers on two connections settle the same journal: each
// batch counts once. Two nodes settle one shard when a lease ran out under a
// slow one. The compare-and-set of the position decides; the loser must have
// written nothing.
func testSettleRace(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 1000))
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	for round := range 20 {
		for i := range 10 {
			s.grant(fmt.Sprintf("u%d-%d", round, i), 1)
		}
		b := s.batch()
		f.oneWins(ledgers, func(l ledger.Ledger) error { return l.Live.Settle(t.Context(), []live.Batch{b}) })
	}
	same(t, "claims", f.clean(c).Claims, int64(200))
}
