package ledgertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// settleOrQuarantine settles the entries of the script one at a time, and
// quarantines those that the ledger refuses, as the service does. It returns
// how many it quarantined. The service halves a refused batch until one entry
// is left; one at a time gives the same result.
func (f *fixture) settleOrQuarantine(s *script) (n int) {
	f.t.Helper()
	b := s.batch()
	from := b.From
	for i := range b.Entries {
		one := live.Batch{Campaign: b.Campaign, Shard: b.Shard, Fence: b.Fence, From: from, To: b.Entries[i].Cursor, Entries: b.Entries[i : i+1]}
		err := f.ledger().Live.Settle(f.t.Context(), []live.Batch{one})
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
func (f *fixture) inQuarantine(c *dibs.Campaign) []live.Quarantined {
	f.t.Helper()
	found := try(f.ledger().Live.Quarantined(f.t.Context(), live.QuarantineFilter{Campaign: c.Number}, 100)).must(f.t)
	return found
}

// testQuarantine quarantines grants that oversell, and goes on behind them. One
// entry that can never settle would otherwise stop all claims behind it. It
// counts as far as there is stock: u2's four units take the three that are
// left.
func testQuarantine(t *testing.T, f *fixture) {
	c := campaign("c", 5)
	c.PayWithin = time.Minute
	_, s := f.loaded(c)
	s.grant("u1", 2)
	bad := s.grant("u2", 4)
	all := s.peek()
	wants(t, "an oversold batch", f.ledger().Live.Settle(t.Context(), []live.Batch{all}), dibs.ErrPoison)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	// An entry about the quarantined claim settles behind it and moves nothing.
	s.release(bad.Cursor, 4)
	f.settle(s)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 5, Pending: 5})
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
	same(t, "the entry", found[0], live.Quarantined{Shard: s.shard, Entry: all.Entries[2], Why: "because"})
	everywhere := try(f.ledger().Live.Quarantined(t.Context(), live.QuarantineFilter{}, 1)).must(t)
	same(t, "entries of all campaigns", len(everywhere), 1)

	// The user was told yes: the load has the claim, so that limit and repeat count
	// it.
	load, _ := f.load(c, 0)
	same(t, "stock left", load.StockLeft, int64(0))
	same(t, "holdings", len(load.Holdings), 2)
	e := all.Entries[2]
	same(t, "the holding", load.Holdings[1], dibs.Holding{
		Cursor: bad.Cursor, UserID: "u2", Key: e.Key, Quantity: 4, At: e.At, PayBy: e.PayBy,
	})
}

// testQuarantineFilters finds entries by each of their properties, page by page, and
// counts them shard by shard.
func testQuarantineFilters(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger().Live
	first, second := f.insert(campaign("c", 1)), f.insert(campaign("d", 1))
	var all []dibs.Position
	var keys []uint64
	for _, c := range []*dibs.Campaign{first, second} {
		_, s := f.load(c, 0)
		for _, user := range []string{"ann", "bob", "ann"} {
			s.grant(user, 2)
		}
		b := s.peek()
		for i := range b.Entries {
			if e := &b.Entries[i]; e.Kind == dibs.EntryGrant {
				all, keys = append(all, dibs.Position{ShardID: s.shard, Cursor: e.Cursor}), append(keys, e.Key)
			}
		}
		same(t, "entries in quarantine", f.settleOrQuarantine(s), 3)
	}
	finds := func(what string, filter live.QuarantineFilter, most int, want ...dibs.Position) {
		t.Helper()
		found := try(l.Quarantined(ctx, filter, most)).must(t)
		var got []dibs.Position
		for i := range found {
			got = append(got, found[i].Place())
		}
		same(t, what, got, want)
	}
	finds("all", live.QuarantineFilter{}, 10, all...)
	finds("a campaign's", live.QuarantineFilter{Campaign: second.Number}, 10, all[3:]...)
	finds("a user's", live.QuarantineFilter{User: "ann"}, 10, all[0], all[2], all[3], all[5])
	finds("a user's of a campaign by the key", live.QuarantineFilter{Campaign: second.Number, User: "ann", Key: keys[5]}, 10, all[5])
	finds("that of a place", live.QuarantineFilter{At: all[4]}, 10, all[4])
	finds("those after a place", live.QuarantineFilter{After: all[1]}, 3, all[2:5]...)
	finds("a user's after a place", live.QuarantineFilter{User: "bob", After: all[1]}, 3, all[4])
	finds("what is not there", live.QuarantineFilter{User: "eve"}, 10)
	counts := try(l.CountQuarantined(ctx)).must(t)
	same(t, "counts", counts, map[dibs.ShardID]int64{all[0].ShardID: 3, all[3].ShardID: 3})
}

// testUnreadable quarantines an entry that cannot be read: it moves nothing but
// the position, it is listed as unreadable, and it never settles. Nobody knows
// what it was, so nothing may be guessed from it.
func testUnreadable(t *testing.T, f *fixture) {
	c := campaign("c", 5)
	_, s := f.loaded(c)
	s.grant("u1", 2)
	lost := s.next(dibs.Entry{Kind: dibs.EntryUnreadable})
	s.grant("u2", 1)
	all := s.peek()
	wants(t, "a batch that cannot be read whole", f.ledger().Live.Settle(t.Context(), []live.Batch{all}), dibs.ErrPoison)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 5, StockLeft: 2, Confirmed: 3})
	a := f.clean(c)
	same(t, "in quarantine", a.InQuarantine, []string{fmt.Sprintf("%s, what cannot be read: because", dibs.Position{ShardID: s.shard, Cursor: lost})})
	at := dibs.Position{ShardID: s.shard, Cursor: all.Entries[2].Cursor}
	wants(t, "settling it", f.ledger().Audit.Readmit(t.Context(), c, at), dibs.ErrPoison)
	load, _ := f.load(c, 0)
	same(t, "stock left", load.StockLeft, int64(2))
	same(t, "holdings", len(load.Holdings), 2)
}

// testQuarantineItems quarantines grants whose items are others', or are not.
// An item of an entry in quarantine stays out of every load: its user was told
// that they have it. An entry with fewer valid items than units keeps back
// others in place of those missing.
func testQuarantineItems(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 0), values("v", 6)...)
	s.grant("u1", 1, 0)
	s.grant("u2", 1, 0)
	s.grant("u3", 1, 99)
	free := s.grant("u4", 2, 1)
	s.grant("u5", 1, 2)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 3)
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(0))
	a := f.clean(c)
	same(t, "what they withhold", a.Withheld, int64(4))
	// Item 99 does not exist and has no value; the others are shown by theirs.
	found := f.inQuarantine(c)
	same(t, "the values", [][]string{found[0].Items, found[1].Items, found[2].Items}, [][]string{{"v-0"}, nil, {"v-1"}})

	// The holdings name the items as the entries do, but for those that do not
	// exist.
	load, s := f.load(c, 0)
	same(t, "free items", len(load.FreeItems), 0)
	var held [][]uint32
	for _, h := range load.Holdings {
		held = append(held, h.Items)
	}
	same(t, "the items held", held, [][]uint32{{0}, {0}, {}, {1}, {2}})
	// A restock brings two free items, while the quarantined entries keep theirs
	// back.
	id := dibs.ShardID{Campaign: c.Number}
	f.must(f.ledger().Campaigns.Restock(t.Context(), campaigns.Restock{Shard: id, Ref: "r", Delta: 2, Items: []string{"new-1", "new-2"}}))
	s.adjust("r", 2, 6, 7)
	f.settle(s)
	load, _ = f.load(c, 0)
	same(t, "stock left after a restock", load.StockLeft, int64(2))
	same(t, "free items, what is in quarantine kept back", load.FreeItems, []uint32{3, 4})
	wants(t, "settle what has too few items", f.ledger().Audit.Readmit(t.Context(), c, free), dibs.ErrPoison)
	f.clean(c)
}

// testQuarantineWithdrawal quarantines withdrawals of more than is left. They
// take the four units that are left, since the engine has given up five, and
// grant none. A load knows their refs, so that the engine does not make them
// again. The second one repeats the ref of the first: both are recorded, so
// that an admin sees what the engine did.
func testQuarantineWithdrawal(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 5)
	s.grant("u2", 1)
	s.adjust("w", -5)
	s.adjust("w", -5)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 2)
	f.changed(c, []int64{-5, -5}, "w")
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 10, Confirmed: 6})
	a := f.clean(c)
	same(t, "units granted by it", a.QuarantinedUnits, int64(0))
	load, _ := f.load(c, 0)
	same(t, "holdings", len(load.Holdings), 2)
	same(t, "refs", load.Refs, []string{"w", "w"})
}

// testQuarantineRefused asks to quarantine what must not be: an opening entry,
// an entry out of turn, two entries at once, and an entry a second time.
// Quarantine moves the position without writing a claim, so whatever it accepts
// by mistake waits for an administrator. Each refusal leaves position and sums
// as they were.
func testQuarantineRefused(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	opening := s.batch()
	wants(t, "an opening entry", l.Live.Quarantine(ctx, opening, ""), dibs.ErrCorrupt)
	f.must(l.Live.Settle(ctx, []live.Batch{opening}))
	s.grant("u1", 1)
	first := s.batch()
	s.grant("u2", 1)
	second := s.batch()
	// The entry before it is not settled: it would be passed over.
	wants(t, "an entry too early", l.Live.Quarantine(ctx, second, ""), dibs.ErrPositionMoved)
	two := first
	two.To, two.Entries = second.To, append(first.Entries[:1:1], second.Entries...)
	wants(t, "two entries", l.Live.Quarantine(ctx, two, ""), dibs.ErrGap)
	// An entry that could settle is taken all the same: the caller decides.
	f.must(l.Live.Quarantine(ctx, first, ""))
	before := f.totals(c, 0)
	wants(t, "the same again", l.Live.Quarantine(ctx, first, ""), dibs.ErrPositionMoved)
	same(t, "the totals", f.totals(c, 0), before)
	wants(t, "settle what is not there", l.Audit.Readmit(ctx, c, dibs.Position{ShardID: s.shard, Cursor: second.To}), dibs.ErrNotFound)
	f.must(l.Live.Settle(ctx, []live.Batch{second}))
	f.must(l.Audit.Readmit(ctx, c, dibs.Position{ShardID: s.shard, Cursor: first.To}))
	same(t, "the totals at the end", f.totals(c, 0).StockLeft, int64(8))
	f.clean(c)
}

// testQuarantineRace quarantines the same entry from two connections: it counts
// once. Counted twice it would withhold stock that nobody was promised.
func testQuarantineRace(t *testing.T, f *fixture) {
	c, s := f.loaded(campaign("c", 100))
	f.settle(s)
	ledgers := []ledger.Ledger{f.ledger(), f.open()}
	for round := range 10 {
		s.grant(fmt.Sprintf("u%d", round), 1)
		b := s.batch()
		f.oneWins(ledgers, func(l ledger.Ledger) error { return l.Live.Quarantine(t.Context(), b, "") })
	}
	same(t, "entries in quarantine", f.clean(c).Quarantined, int64(10))
	same(t, "stock left", f.totals(c, 0).StockLeft, int64(90))
}

// testReadmit settles a quarantined grant once there is stock for it: refused
// before, done once, and the claim is as if it had settled in its turn. The
// user was told yes when they claimed; the administrator's restock makes that
// true.
func testReadmit(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 3))
	s.grant("u1", 2)
	bad := s.grant("u2", 2)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	wants(t, "settle it while there is too little", l.Audit.Readmit(ctx, c, bad), dibs.ErrPoison)
	same(t, "entries in quarantine after that", len(f.inQuarantine(c)), 1)
	// The restock alone settles nothing: the administrator asks for it.
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 4}))
	f.must(l.Audit.Readmit(ctx, c, bad))
	same(t, "the claim's user", try(l.Claims.Claim(ctx, bad)).must(t).UserID, "u2")
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 7, StockLeft: 3, Confirmed: 4})
	same(t, "entries in quarantine at the end", f.clean(c).Quarantined, int64(0))
	wants(t, "settle it twice", l.Audit.Readmit(ctx, c, bad), dibs.ErrNotFound)
}

// testReadmitWithdrawal settles a quarantined withdrawal once there is stock
// for it. Until then it withholds what is left: the engine has given those
// units up.
func testReadmitWithdrawal(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 10))
	s.grant("u1", 5)
	s.grant("u2", 1)
	s.adjust("w", -5)
	same(t, "entries in quarantine", f.settleOrQuarantine(s), 1)
	at := dibs.Position{ShardID: s.shard, Cursor: s.last}
	wants(t, "settle it while there is too little", l.Audit.Readmit(ctx, c, at), dibs.ErrPoison)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 3}))
	f.must(l.Audit.Readmit(ctx, c, at))
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 8, StockLeft: 2, Confirmed: 6})
	a := f.clean(c)
	same(t, "the audit's stock", a.Stock, int64(8))
	same(t, "entries in quarantine at the end", a.Quarantined, int64(0))
}

// testRecount recounts what is right already, beside entries in quarantine that
// have more to take by now. Recounting compares the sums with the rows, and
// what the quarantine may take follows from the sums: so it changes nothing
// where nothing was wrong, and takes the rest of u2's units once there is stock
// for them.
func testRecount(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.loaded(campaign("c", 3))
	s.grant("u1", 2)
	s.grant("u2", 2)
	f.settleOrQuarantine(s)
	// The sums are right, whatever the quarantine withholds.
	same(t, "sums that differed", len(try(l.Audit.Recount(ctx, c)).must(t)), 0)
	f.must(l.Campaigns.Restock(ctx, campaigns.Restock{Shard: s.shard, Ref: "r", Delta: 4}))
	// Four more units: the entry withheld one of its two, and now withholds both.
	changed := try(l.Audit.Recount(ctx, c)).must(t)
	if len(changed) == 0 {
		t.Error("the entry in quarantine takes no more than before")
	}
	same(t, "the totals", f.totals(c, 0), live.ShardTotals{Position: s.last, Epoch: s.last.Epoch, Stock: 7, StockLeft: 3, Confirmed: 4})
	f.clean(c)
	wants(t, "recount what is not there",
		errOf(l.Audit.Recount(ctx, &dibs.Campaign{Number: c.Number + 7})), dibs.ErrNotFound)
}
