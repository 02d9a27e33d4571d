package ledgertest

import (
	"fmt"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/ledger"
	"github.com/dibs-dev/dibs/live"
)

// packetOver publishes a red packet of the platform over several shards, and loads
// all of them.
func (f *fixture) packetOver(id string, shards int, amounts ...int64) (c *dibs.Campaign, scripts []*script) {
	f.t.Helper()
	c = f.publish(f.packetDraft(id, "", shards, amounts...))
	return c, f.loadAll(c, shards)
}

// testPacketLuck: the greatest shares come first, of equal ones the earlier; all that were opened are counted, over all
// shards, and those of other campaigns are not.
func testPacketLuck(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.packetOver("c", 2, 10, 40, 40, 20, 5, 1)
	other, of := f.packetOver("other", 1, 100, 200)
	of[0].grant("u9", 1, 1)
	f.settle(of...)
	luck := func(most int) string {
		got := try(l.Claims.Luck(ctx, c.Number, most)).must(t)
		text := fmt.Sprintf("%d of %d", got.Opened, got.Sum)
		for _, share := range got.Greatest {
			text += fmt.Sprintf(" %s:%d", share.UserID, share.Amount)
		}
		same(t, "the last one is told", got.LastAt.IsZero(), got.Opened == 0)
		return text
	}
	same(t, "before the first share", luck(5), "0 of 0")
	// Shares are dealt out one by one: those of even numbers are the first shard's.
	s[0].grant("u0", 1, 0)
	s[0].grant("u1", 1, 2)
	s[1].grant("u2", 1, 1)
	s[1].grant("u3", 1, 3)
	f.settle(s...)
	got := luck(3)
	if got != "4 of 110 u1:40 u2:40 u3:20" && got != "4 of 110 u2:40 u1:40 u3:20" {
		t.Errorf("four shares: %s", got)
	}
	same(t, "another red packet's", try(l.Claims.Luck(ctx, other.Number, 1)).must(t).Sum, int64(200))
}

// testPacketShards takes a red packet of three shards through its life. Shares are
// dealt out one by one, move from shard to shard, and are credited by the shard that
// granted them, however the places of two shards are alike. The remainder goes back
// when all shards are empty and credited, and not before: what has left one shard and
// has not been taken out of the other is free.
func testPacketShards(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.packetOver("c", 3, 1, 2, 4, 8, 16, 32, 64)
	f.stocks(c, 3, 2, 2)
	// The same place on three shards: three claims, three credits.
	s[0].grant("u0", 1, 3)
	s[1].grant("u1", 1, 1)
	s[2].grant("u2", 1, 5)
	f.settle(s...)
	open := try(l.Funds.OpenPackets(ctx)).must(t)
	same(t, "there is something to credit", fmt.Sprint(open[0].Behind, open[0].Left), "true 4")
	same(t, "claims that wait", f.funds(c, 0, 0, 127).Packet.Waiting, int64(3))
	// Two at a time: what is left of the shards is credited by the next call.
	same(t, "credited", f.credit(c, 2), 3)
	f.has("u0", 8)
	f.has("u1", 2)
	f.has("u2", 32)
	f.funds(c, 42, 0, 85)

	// Share 4 of shard 1 moves to shard 2, which grants it in its next epoch. The
	// donor's position passes the transfer, of which nothing is credited.
	out := dibs.Transfer{ID: "m-1", To: 2}
	s[1].adjust(out.Leaves(), -1, 4)
	f.settle(s[1])
	f.stocks(c, 2, 0, 2)
	same(t, "credited by a transfer", f.credit(c, 10), 0)
	load, next := f.load(c, 2)
	same(t, "free shares of the recipient", load.FreeItems, []uint32{2, 4})
	s[2] = next
	s[2].grant("u3", 1, 4)
	f.settle(s[2])
	same(t, "credited after the transfer", f.credit(c, 10), 1)
	f.has("u3", 16)

	// The end: shard 0 gives up all it has, and one share leaves shard 2 for it.
	f.end(c)
	s[0].adjust("remainder of 0 from 2 moved 0", -2, 0, 6)
	s[2].adjust(dibs.Transfer{ID: "m-2", To: 0}.Leaves(), -1, 2)
	f.settle(s[0], s[2])
	f.credit(c, 10)
	f.comesHome(c, false)
	s[0].adjust("remainder of 0 from 1 moved -1", -1, 2)
	f.settle(s[0])
	f.comesHome(c, false)
	same(t, "credited at the end", f.credit(c, 10), 0)
	f.comesHome(c, true)
	f.comesHome(c, false)
	f.funds(c, 58, 69, 0)
	f.books()
}

// testPacketShardReadmit settles a claim of one shard from the quarantine: it is
// credited with it when the credits of its own shard have passed its place, however far
// those of other shards are.
func testPacketShardReadmit(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.packetOver("c", 2, 10, 20, 30, 40)
	late := s[1].grant("u1", 1, 1)
	f.must(l.Live.Quarantine(ctx, s[1].batch(), "planted"))
	s[1].grant("u2", 1, 3)
	f.settle(s[1])
	f.end(c)
	same(t, "credited", f.credit(c, 10), 1)
	f.must(l.Audit.Readmit(ctx, c, late))
	f.has("u1", 20)
	early := s[0].grant("u3", 1, 0)
	f.must(l.Live.Quarantine(ctx, s[0].batch(), "planted"))
	f.must(l.Audit.Readmit(ctx, c, early))
	f.has("u3", 0)
	same(t, "credited in turn", f.credit(c, 10), 1)
	f.funds(c, 70, 0, 30)
}

// testPacketShardRace credits a red packet of four shards from three nodes at once,
// while its shards are settled and shares move between them: each is credited once.
// Each amount is another power of two, so no two mistakes make up for each other.
func testPacketShardRace(t *testing.T, f *fixture) {
	const shards, each = 4, 12
	amounts, sum := make([]int64, shards*each), int64(0)
	for i := range amounts {
		amounts[i] = 1 << i
		sum += amounts[i]
	}
	c, scripts := f.packetOver("c", shards, amounts...)
	nodes := []ledger.Ledger{f.ledger(), f.open(), f.open()}
	done := make(chan error)
	settled := make(chan struct{})
	for _, l := range nodes {
		go func() {
			for over := false; ; {
				if _, err := l.Funds.CreditClaims(t.Context(), c, start, 3); err != nil || over {
					done <- err
					return
				}
				select {
				case <-settled:
					over = true
				default:
				}
			}
		}()
	}
	for n := range each {
		// In some rounds each shard grants the share that the next one has given it.
		by := 0
		if n%3 == 2 {
			by = 1
			for i, s := range scripts {
				to := uint8((i + shards - 1) % shards)
				s.adjust(dibs.Transfer{ID: fmt.Sprintf("m-%d-%d", n, i), To: to}.Leaves(), -1, uint32(n*shards+i))
			}
			f.settle(scripts...)
		}
		for i, s := range scripts {
			s.grant(fmt.Sprintf("u-%d-%d", n, i), 1, uint32(n*shards+(i+by)%shards))
		}
		f.settle(scripts...)
	}
	close(settled)
	for range nodes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	f.credit(c, 1000)
	f.funds(c, sum, 0, 0)
	f.books()
}

// testMoreShards gives campaigns more shards: each new one begins without stock, and
// receives some by transfers; what the campaign began with was the first ones'. Nothing
// is made twice, and a change of a version that is not the latest makes nothing.
func testMoreShards(t *testing.T, f *fixture) {
	ctx, l := t.Context(), f.ledger()
	c, s := f.spread("c", 2, 11)
	s[0].grant("u", 2)
	f.settle(s[0])
	stale, older := *c, *c
	for _, shards := range []int{4, 5} {
		c.EarlierShards, c.Shards = append(c.EarlierShards, c.Shards), shards
		f.must(l.Campaigns.UpdateCampaign(ctx, c))
	}
	older.EarlierShards, older.Shards = []int{2}, 9
	wants(t, "more shards by an older version", l.Campaigns.UpdateCampaign(ctx, &older), dibs.ErrConflict)
	got := try(l.Live.Campaign(ctx, "c")).must(t)
	same(t, "its shards now and before", fmt.Sprint(got.Shards, got.EarlierShards), "5 [2 4]")
	f.stocks(c, 4, 5, 0, 0, 0)
	s[1].adjust(dibs.Transfer{ID: "m-1", To: 4}.Leaves(), -3)
	// The node that settles may not know yet that the campaign has more shards.
	behind := s[1].batch()
	behind.Campaign = &stale
	f.must(l.Live.Settle(ctx, []live.Batch{behind}))
	f.stocks(c, 4, 2, 0, 0, 3)
	same(t, "commands to a shard that no engine has opened", len(f.waiting()), 0)
	load, last := f.load(c, 4)
	same(t, "left of the new shard", fmt.Sprint(load.StockLeft, load.Moved), "3 -3")
	last.grant("v", 3)
	f.settle(last)
	f.stocks(c, 4, 2, 0, 0, 0)
	same(t, "sums that a recount changed", len(try(l.Audit.Recount(ctx, c)).must(t)), 0)

	p, scripts := f.packetOver("p", 2, 1, 2, 4, 8)
	p.EarlierShards, p.Shards = []int{2}, 3
	f.must(l.Campaigns.UpdateCampaign(ctx, p))
	scripts[0].adjust(dibs.Transfer{ID: "m-2", To: 2}.Leaves(), -1, 2)
	f.settle(scripts[0])
	_, third := f.load(p, 2)
	third.grant("w", 1, 2)
	f.settle(third)
	same(t, "credited by a new shard", f.credit(p, 10), 1)
	f.has("w", 4)
	f.funds(p, 4, 0, 11)
}
