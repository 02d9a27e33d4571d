package ledgertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/ledger"
)

// aside makes the script's entries, one at a time, settle or go into
// quarantine, as the service does, and returns how many went there.
func (f *fixture) aside(s *script) (n int) {
	f.t.Helper()
	b := s.batch()
	from := b.From
	for i := range b.Entries {
		one := dibs.Batch{Campaign: b.Campaign, Shard: b.Shard, Fence: b.Fence, From: from, To: b.Entries[i].Cursor, Entries: b.Entries[i : i+1]}
		err := f.ledger().Live.Settle(f.t.Context(), []dibs.Batch{one})
		if errors.Is(err, dibs.ErrPoison) {
			n++
			err = f.ledger().Live.Quarantine(f.t.Context(), one, "because")
		}
		f.must(err)
		from = one.To
	}
	return n
}

// inQuarantine lists a campaign's entries in quarantine.
func (f *fixture) inQuarantine(c *dibs.Campaign) []dibs.Quarantined {
	f.t.Helper()
	found, err := f.ledger().Live.Quarantined(f.t.Context(), c.Number, 100)
	f.must(err)
	return found
}

// testQuarantine sets grants aside that oversell, and goes on behind them.
func testQuarantine(t *testing.T, f *fixture) {
	c := campaign("c", 5)
	c.PayWithin = time.Minute
	f.insert(c)
	_, s := f.load(c, 0)
	s.grant("u1", 2)
	bad := s.grant("u2", 4)
	all := s.peek()
	wants(t, "an oversold batch", f.ledger().Live.Settle(t.Context(), []dibs.Batch{all}), dibs.ErrPoison)
	same(t, "entries in quarantine", f.aside(s), 1)
	s.release(bad.Cursor, 4)
	f.settle(s)
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 5, Pending: 5})
	a := f.clean(c)
	same(t, "the audit", *a, audit.CampaignAudit{
		Stock: 5, Held: 2, Claims: 1, ByStatus: map[string]int64{"pending": 2}, SumHeld: 5, SumsAgree: true,
		Quarantined: 1, QuarantinedUnits: 4, Withheld: 3,
		InQuarantine: []string{fmt.Sprintf("%s, a grant of 4 to user u2: because", bad)},
	})
	found := f.inQuarantine(c)
	if len(found) != 1 || found[0].At.IsZero() {
		t.Fatalf("in quarantine: %+v", found)
	}
	found[0].At = time.Time{}
	same(t, "the entry", found[0], dibs.Quarantined{Shard: s.shard, Entry: all.Entries[2], Why: "because"})
	everywhere, err := f.ledger().Live.Quarantined(t.Context(), 0, 1)
	f.must(err)
	same(t, "entries of all campaigns", len(everywhere), 1)

	load, _ := f.load(c, 0)
	same(t, "stock left", load.StockLeft, int64(0))
	same(t, "holdings", len(load.Holdings), 2)
	e := all.Entries[2]
	same(t, "the holding", load.Holdings[1], dibs.Holding{
		Cursor: bad.Cursor, UserID: "u2", Key: e.Key, Quantity: 4, At: e.At, PayBy: e.PayBy,
	})
}

// testUnreadable sets aside what nobody can read: it moves nothing but the
// position, everybody sees it, and it never settles.
func testUnreadable(t *testing.T, f *fixture) {
	c := campaign("c", 5)
	f.insert(c)
	_, s := f.load(c, 0)
	s.grant("u1", 2)
	lost := s.next(dibs.Entry{Kind: dibs.EntryUnreadable})
	s.grant("u2", 1)
	all := s.peek()
	wants(t, "a batch that cannot be read whole", f.ledger().Live.Settle(t.Context(), []dibs.Batch{all}), dibs.ErrPoison)
	same(t, "entries in quarantine", f.aside(s), 1)
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 5, StockLeft: 2, Confirmed: 3})
	a := f.clean(c)
	same(t, "in quarantine", a.InQuarantine, []string{fmt.Sprintf("%s, what cannot be read: because", dibs.Position{ShardID: s.shard, Cursor: lost})})
	at := dibs.Position{ShardID: s.shard, Cursor: all.Entries[2].Cursor}
	wants(t, "settling it", f.ledger().Audit.Readmit(t.Context(), c, at), dibs.ErrPoison)
	load, _ := f.load(c, 0)
	same(t, "stock left", load.StockLeft, int64(2))
	same(t, "holdings", len(load.Holdings), 2)
}

// testQuarantineItems sets grants aside whose items are others', or are not.
func testQuarantineItems(t *testing.T, f *fixture) {
	c := f.insertItems(campaign("c", 0), values("v", 6))
	_, s := f.load(c, 0)
	s.grant("u1", 1, 0)
	s.grant("u2", 1, 0)
	s.grant("u3", 1, 99)
	free := s.grant("u4", 2, 1)
	s.grant("u5", 1, 2)
	same(t, "entries in quarantine", f.aside(s), 3)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(0))
	a := f.clean(c)
	same(t, "what they withhold", a.Withheld, int64(4))
	found := f.inQuarantine(c)
	same(t, "the values", [][]string{found[0].Items, found[1].Items, found[2].Items}, [][]string{{"v-0"}, nil, {"v-1"}})

	load, s := f.load(c, 0)
	same(t, "free items", len(load.FreeItems), 0)
	var held [][]uint32
	for _, h := range load.Holdings {
		held = append(held, h.Items)
	}
	same(t, "the items held", held, [][]uint32{{0}, {0}, {}, {1}, {2}})
	id := dibs.ShardID{Campaign: c.Number}
	f.must(f.ledger().Campaigns.Restock(t.Context(), dibs.Restock{Shard: id, Ref: "r", Delta: 2, Items: []string{"new-1", "new-2"}}))
	s.adjust("r", 2, 6, 7)
	f.settle(s)
	load, _ = f.load(c, 0)
	same(t, "stock left after a restock", load.StockLeft, int64(2))
	same(t, "free items, what is in quarantine kept back", load.FreeItems, []uint32{3, 4})
	wants(t, "settle what has too few items", f.ledger().Audit.Readmit(t.Context(), c, free), dibs.ErrPoison)
	f.clean(c)
}

func testQuarantineWithdrawal(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 10))
	_, s := f.load(c, 0)
	s.grant("u1", 5)
	s.grant("u2", 1)
	s.adjust("w", -5)
	s.adjust("w", -5)
	same(t, "entries in quarantine", f.aside(s), 2)
	f.changed(c, []int64{-5, -5}, "w")
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 10, Confirmed: 6})
	a := f.clean(c)
	same(t, "units granted by it", a.QuarantinedUnits, int64(0))
	load, _ := f.load(c, 0)
	same(t, "holdings", len(load.Holdings), 2)
	same(t, "refs", load.Refs, []string{"w", "w"})
}

// testQuarantineRefused asks for what must not be set aside.
func testQuarantineRefused(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	_, s := f.load(c, 0)
	opening := s.batch()
	wants(t, "an opening entry", l.Live.Quarantine(ctx, opening, ""), dibs.ErrCorrupt)
	f.must(l.Live.Settle(ctx, []dibs.Batch{opening}))
	s.grant("u1", 1)
	first := s.batch()
	s.grant("u2", 1)
	second := s.batch()
	wants(t, "an entry too early", l.Live.Quarantine(ctx, second, ""), dibs.ErrPositionMoved)
	two := first
	two.To, two.Entries = second.To, append(first.Entries[:1:1], second.Entries...)
	wants(t, "two entries", l.Live.Quarantine(ctx, two, ""), dibs.ErrGap)
	f.must(l.Live.Quarantine(ctx, first, ""))
	before := f.totals(c, 0)
	wants(t, "the same again", l.Live.Quarantine(ctx, first, ""), dibs.ErrPositionMoved)
	same(t, "the totals", f.totals(c, 0), before)
	wants(t, "settle what is not there", l.Audit.Readmit(ctx, c, dibs.Position{ShardID: s.shard, Cursor: second.To}), dibs.ErrNotFound)
	f.must(l.Live.Settle(ctx, []dibs.Batch{second}))
	f.must(l.Audit.Readmit(ctx, c, dibs.Position{ShardID: s.shard, Cursor: first.To}))
	same(t, "the totals at the end", f.totals(c, 0).StockLeft, int64(8))
	f.clean(c)
}

// testQuarantineRace sets the same entry aside from two connections: it counts
// once.
func testQuarantineRace(t *testing.T, f *fixture) {
	c := f.insert(campaign("c", 100))
	_, s := f.load(c, 0)
	f.settle(s)
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	for round := range 10 {
		s.grant(fmt.Sprintf("u%d", round), 1)
		b := s.batch()
		errs := make(chan error, len(ledgers))
		for _, l := range ledgers {
			go func() { errs <- l.Live.Quarantine(t.Context(), b, "") }()
		}
		won := 0
		for range ledgers {
			if err := <-errs; err == nil {
				won++
			} else {
				wants(t, "the slower one", err, dibs.ErrPositionMoved)
			}
		}
		same(t, "those that won", won, 1)
	}
	same(t, "entries in quarantine", f.clean(c).Quarantined, int64(10))
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(90))
}

func testReadmit(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 3))
	_, s := f.load(c, 0)
	s.grant("u1", 2)
	bad := s.grant("u2", 2)
	same(t, "entries in quarantine", f.aside(s), 1)
	wants(t, "settle it while there is too little", l.Audit.Readmit(ctx, c, bad), dibs.ErrPoison)
	same(t, "entries in quarantine after that", len(f.inQuarantine(c)), 1)
	f.must(l.Campaigns.Restock(ctx, dibs.Restock{Shard: s.shard, Ref: "r", Delta: 4}))
	f.must(l.Audit.Readmit(ctx, c, bad))
	got, err := l.Claims.Claim(ctx, bad)
	f.must(err)
	same(t, "the claim's user", got.UserID, "u2")
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 7, StockLeft: 3, Confirmed: 4})
	same(t, "entries in quarantine at the end", f.clean(c).Quarantined, int64(0))
	wants(t, "settle it twice", l.Audit.Readmit(ctx, c, bad), dibs.ErrNotFound)
}

func testReadmitWithdrawal(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 10))
	_, s := f.load(c, 0)
	s.grant("u1", 5)
	s.grant("u2", 1)
	s.adjust("w", -5)
	same(t, "entries in quarantine", f.aside(s), 1)
	at := dibs.Position{ShardID: s.shard, Cursor: s.last}
	wants(t, "settle it while there is too little", l.Audit.Readmit(ctx, c, at), dibs.ErrPoison)
	f.must(l.Campaigns.Restock(ctx, dibs.Restock{Shard: s.shard, Ref: "r", Delta: 3}))
	f.must(l.Audit.Readmit(ctx, c, at))
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 8, StockLeft: 2, Confirmed: 6})
	a := f.clean(c)
	same(t, "the audit's stock", a.Stock, int64(8))
	same(t, "entries in quarantine at the end", a.Quarantined, int64(0))
}

// testRecount recounts what is right already, beside entries in quarantine that
// have more to take by now.
func testRecount(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c := f.insert(campaign("c", 3))
	_, s := f.load(c, 0)
	s.grant("u1", 2)
	s.grant("u2", 2)
	f.aside(s)
	changed, err := l.Audit.Recount(ctx, c)
	f.must(err)
	same(t, "sums that differed", len(changed), 0)
	f.must(l.Campaigns.Restock(ctx, dibs.Restock{Shard: s.shard, Ref: "r", Delta: 4}))
	changed, err = l.Audit.Recount(ctx, c)
	f.must(err)
	if len(changed) == 0 {
		t.Error("the entry in quarantine takes no more than before")
	}
	same(t, "the totals", f.totals(c, 0), dibs.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 7, StockLeft: 3, Confirmed: 4})
	f.clean(c)
	_, err = l.Audit.Recount(ctx, &dibs.Campaign{Number: c.Number + 7})
	wants(t, "recount what is not there", err, dibs.ErrNotFound)
}
