package enginetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/dibs-dev/dibs"
)

var grantChecks = []Check{
	{"grants/a grant tells what was granted", checkGrantContent},
	{"grants/every grant is one journal entry, without gaps", checkGrantJournal},
	{"grants/pay_by is the time to pay after the grant", checkPayBy},
	{"grants/refusals leave no trace", checkRefusalsLeaveNothing},
	{"grants/campaigns do not disturb one another", checkCampaignsApart},
	{"grants/shards of a campaign have stocks of their own", checkShardsApart},
}

// checkGrantContent checks every field of a grant of units. Its place is seq 2, since
// seq 1 is the entry that opened the epoch; ids of claims are made from the place, and
// so an engine must not number grants in a way of its own.
func checkGrantContent(r *rig) {
	o := r.offer(10, limit(5))
	g := o.grant("ann", 7, 3)
	o.that(g.Seq == 2, "the first grant stands at %v, want seq 2, after the entry that opened the epoch", g.Cursor)
	o.that(g.Items == nil, "a grant of units has items %q", g.Items)
	o.that(!g.Released, "a new grant is released")
	equal(r, "PayBy without a time to pay", g.PayBy, 0)
	o.decidedNow("grant", g.At)
	o.counts(7, 3)
}

// decidedNow expects a time in milliseconds to be the engine's present one. A settable
// clock has to be shown to the millisecond; an engine on another clock may differ by
// less than a minute.
func (o *offer) decidedNow(what string, ms int64) {
	off := time.UnixMilli(ms).Sub(o.time())
	if o.factory.OwnClock {
		o.that(off.Abs() < time.Minute, "the %s was decided %v away from now", what, off)
		return
	}
	o.that(off > -time.Millisecond && off <= 0, "the %s was decided at %v, the clock shows %v", what, time.UnixMilli(ms).UTC(), o.time())
}

// checkGrantJournal compares the journal with the answers: the opening, then one entry
// for each grant at the place that the answer named, with seq growing by 1. The ledger
// is built from the entries alone: whatever is missing in them is lost for good.
func checkGrantJournal(r *rig) {
	o := r.offer(10, limit(5))
	first := o.grant("ann", 7, 3)
	second := o.grant("bob", 0, 1)
	third := o.grant("ann", 8, 1)
	got := o.journal(dibs.Cursor{})
	o.that(len(got) == 4, "the journal has %d entries, want 4", len(got))
	open := got[0]
	o.that(open.Kind == dibs.EntryOpen && open.Prev == dibs.Cursor{} && open.Cursor == dibs.Cursor{Epoch: 1, Seq: 1},
		"the first entry %+v does not open epoch 1 with nothing before it", open)
	o.decidedNow("opening", open.At)
	for i, g := range []dibs.Grant{first, second, third} {
		want := dibs.Entry{
			Cursor: dibs.Cursor{Epoch: 1, Seq: uint32(i) + 2}, Kind: dibs.EntryGrant, At: g.At,
			UserID: g.UserID, Key: []uint64{7, 0, 8}[i], Quantity: g.Quantity,
		}
		e := got[i+1]
		o.that(g.Cursor == want.Cursor, "grant %d stands at %v, want %v", i, g.Cursor, want.Cursor)
		o.that(len(e.Items) == 0, "an entry of units has items %v", e.Items)
		e.Items = nil
		o.that(reflect.DeepEqual(e, want), "entry %d is %+v, want %+v", i+1, e, want)
	}
}

// checkPayBy checks that a claim with a time to pay carries its deadline in
// milliseconds since 1970, the same in the answer, its repeat and the journal. The
// ledger expires claims by the journal's value: an engine that writes seconds, or
// computes the deadline again for a repeat, expires claims at another moment than it
// told the user.
func checkPayBy(r *rig) {
	o := r.offer(10, func(c *dibs.Campaign) { c.PayWithin = 15 * time.Minute })
	g := o.grant("ann", 1, 1)
	equal(r, "PayBy - At, in milliseconds,", g.PayBy-g.At, (15 * time.Minute).Milliseconds())
	o.replay(1, g)
	entries := o.journal(dibs.Cursor{})
	equal(r, "PayBy of the last entry", entries[len(entries)-1].PayBy, g.PayBy)
}

// checkRefusalsLeaveNothing checks that refusals write nothing. In a flash sale nearly
// all answers are refusals; if each cost a journal entry, the disk would decide how
// many users can be refused.
func checkRefusalsLeaveNothing(r *rig) {
	o := r.offer(1, nil)
	o.grant("ann", 1, 1)
	before := len(o.journal(dibs.Cursor{}))
	o.refuse("ann", 2, 1, dibs.SoldOut)
	o.refuse("ann", 1, 2, dibs.KeyReused)
	o.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	o.refuse("bob", 1, 1, dibs.Paused)
	equal(r, "entries after refusals", len(o.journal(dibs.Cursor{})), before)
	o.counts(0, 1)
	equal(r, "Queued", o.stats().Queued, 0)
}

// checkCampaignsApart runs two campaigns with the same user and the same key. Stock,
// limits, states, keys and journals belong to one campaign: a key table or a pause
// that is shared between campaigns shows here.
func checkCampaignsApart(r *rig) {
	a, b := r.offer(2, nil), r.offer(1, nil)
	ga := a.grant("ann", 5, 1)
	gb := b.grant("ann", 5, 1)
	b.refuse("bob", 5, 1, dibs.SoldOut)
	a.refuse("ann", 6, 1, dibs.LimitReached)
	a.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	a.refuse("bob", 6, 1, dibs.Paused)
	b.restock("more", 1)
	b.grant("bob", 5, 1)
	a.counts(1, 1)
	b.counts(0, 2)
	a.replay(5, ga)
	b.replay(5, gb)
	equal(r, "entries of the first campaign", len(a.journal(dibs.Cursor{})), 2)
}

// shardUser returns the n-th user, from 0 on, whom the campaign sends to a shard.
func shardUser(c *dibs.Campaign, shard uint8, n int) string {
	for i := 0; ; i++ {
		user := fmt.Sprintf("user-%d", i)
		if c.ShardOf(user).Shard != shard {
			continue
		}
		if n == 0 {
			return user
		}
		n--
	}
}

// checkShardsApart checks that each shard has a stock of its own: one that is sold out
// does not take from the other, while the definition is the same for all. An engine
// without shards says so by a MaxShards of 1.
func checkShardsApart(r *rig) {
	if r.eng.MaxShards() < 2 {
		equal(r, "MaxShards", r.eng.MaxShards(), 1)
		return
	}
	c := r.sale(func(c *dibs.Campaign) { c.Shards = 2 })
	a := r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: 0}, 1, nil)
	b := r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: 1}, 2, nil)
	a.grant(shardUser(c, 0, 0), 1, 1)
	a.refuse(shardUser(c, 0, 1), 1, 1, dibs.SoldOut)
	b.grant(shardUser(c, 1, 0), 1, 1)
	a.counts(0, 1)
	b.counts(1, 1)
	a.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	b.refuse(shardUser(c, 1, 1), 1, 1, dibs.Paused)
}
