package enginetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// player runs random operations on an engine and on the model, and compares every
// answer.
//
// Each operation is legal or must be refused in a known way, in whatever state the
// operations before left the shard: that lets shorten leave any of them out.
type player struct {
	*offer
	m *model
	// restocks and withdrawals are the commands that were carried out.
	restocks    []dibs.Adjustment
	withdrawals []dibs.Adjustment
	// trimmed is the place up to which the journal may be gone.
	trimmed dibs.Cursor
	refs    int
	// all are the players of the campaign's shards, this one among them, by their numbers.
	all []*player
}

// newPlayer opens a campaign that the first operation draws.
func newPlayer(r *rig, x op) *player {
	// The numbers of the first operation give limit, kind, time to pay, stock, and whether
	// the stock is units or items.
	change := func(c *dibs.Campaign) {
		c.LimitPerUser = 1 + int64(x.b%4)
		if x.b%3 == 0 {
			c.Kind, c.PayWithin = dibs.Coupon, 90*time.Second
		}
		if x.b%3 == 1 && x.a%4 == 0 {
			c.Kind = dibs.RedPacket
		}
	}
	stock := int64(x.b>>8) % 20
	p := &player{}
	var items []string
	switch x.a % 4 {
	case 0, 2:
		items = seats(int(stock))
		p.offer = r.offerItems(items, change)
	case 1:
		// One user has nearly made all the claims that a user may make.
		p.offer = r.offerAfter(stock, change, func(l *ledger) {
			l.preload(p.user(0), dibs.MaxClaimsPerUser-2, dibs.MaxClaimsPerUser, r.time().UnixMilli())
		})
	default:
		p.offer = r.offer(stock, change)
	}
	for _, o := range p.shards() {
		q := p
		if o != p.offer {
			q = &player{offer: o}
		}
		p.all = append(p.all, q)
		q.m = newModel(o.c, o.shard, stock, items)
		q.m.preload(o.ledger)
		q.trimmed = o.ledger.position
		q.m.open(q.decidedAt())
	}
	for _, q := range p.all {
		q.all = p.all
	}
	return p
}

// run takes all operations, each on one shard, compares the counts of all shards after
// each, and the journals at the end.
func (p *player) run(ops []op) {
	for i, x := range ops {
		p.at(x).step(x)
		for _, q := range p.all {
			q.same(fmt.Sprintf("operation %d, %v", i, x))
		}
	}
	for _, q := range p.all {
		q.finish()
	}
}

// at is the shard of an operation: for a claim the user's.
func (p *player) at(x op) *player {
	i := int(x.b>>20) % len(p.all)
	if x.name == "claim" && len(p.all) > 1 {
		i = int(p.c.ShardOf(p.user(x.a)).Shard)
	}
	return p.all[i]
}

// decidedAt is the time that the engine's last entry carries. With a settable
// clock it is known; else it is read, and held to be near.
func (p *player) decidedAt() int64 {
	at := p.stats().HeadAt
	p.decidedNow("last entry", at)
	return at
}

// same compares the counts after each operation. Nothing runs beside, so nothing may
// be queued.
func (p *player) same(after string) {
	s := p.stats()
	p.that(s.Remaining == p.m.left && s.Granted == p.m.granted() && s.Head == p.m.head && s.Queued == 0,
		"after %s the engine counts %+v, the model %d remaining, %d granted, head %v", after, s, p.m.left, p.m.granted(), p.m.head)
	p.that(s.HeadAt == p.m.entries[len(p.m.entries)-1].At, "after %s the head is of %d, the model's of %d", after, s.HeadAt, p.m.entries[len(p.m.entries)-1].At)
}

// step takes one operation, by its name.
func (p *player) step(x op) {
	switch x.name {
	case "claim":
		p.playClaim(x)
	case "release", "repeatRelease", "unknownRelease", "staleRelease":
		p.playRelease(x)
	case "restock", "repeatRestock", "staleRestock", "withdraw", "repeatWithdraw":
		p.playStock(x)
	case "pause", "resume", "window", "limit", "older", "clock":
		p.playCampaign(x)
	case "find":
		p.playFind(x)
	case "holdings":
		p.playHoldings(x)
	default:
		p.playTail(x)
	}
}

func (p *player) user(n uint32) string { return userName(int(n % 5)) }

// playClaim claims, and compares outcome, place, items and listed claims with the
// model's. The model decides by the clock read before the claim: a settable clock
// stands still meanwhile, and on any other clock the window's edges are half an hour
// away or more.
func (p *player) playClaim(x op) {
	// Few users and keys, so that repeats and reused keys come by themselves.
	req := p.request(p.user(x.a), uint64(x.b%12), 1+int64(x.b>>8)%3)
	if x.b>>16%3 == 0 {
		req.Reference = fmt.Sprintf("https://shop.example/谢谢/%d", x.b)
	}
	before := p.time().UnixMilli()
	got, err := p.eng.Claim(p.ctx, req)
	p.no(err, "claim %+v", req)
	want := p.m.decide(before, req)
	p.that(got.Outcome == want.Outcome && got.Replayed == want.Replayed, "%+v is %v (replayed: %v), the model says %v (%v)",
		req, got.Outcome, got.Replayed, want.Outcome, want.Replayed)
	switch {
	case got.Outcome == dibs.SoldOut:
		equal(p.rig, "Remaining", got.Remaining, want.Remaining)
	case got.Outcome == dibs.LimitReached:
		p.that(slices.Equal(got.Held, want.Held), "Held is %v, the model says %v", got.Held, want.Held)
	case got.Replayed:
		p.that(sameGrant(got.Grant, want.Grant), "%+v returns %+v, the model says %+v", req, got.Grant, want.Grant)
	// The engine chose the items: they have to be free by the model, which takes them
	// over.
	case got.Outcome == dibs.Granted:
		items, ok := p.m.numbers(got.Grant.Items)
		p.that(ok, "%+v is granted %q, not all free", req, got.Grant.Items)
		g := p.m.grant(p.decidedAt(), req, items)
		p.that(sameGrant(got.Grant, g), "%+v is granted %+v, the model says %+v", req, got.Grant, g)
	}
}

// pick chooses one of the model's grants, nil when there is none.
func (p *player) pick(n uint32) *modelGrant {
	if len(p.m.grants) == 0 {
		return nil
	}
	return p.m.grants[int(n)%len(p.m.grants)]
}

// playRelease releases a claim, repeats a release, or sends one that must be refused:
// of a place without a grant, or with the epoch before, whose load has counted it.
func (p *player) playRelease(x op) {
	if x.name == "unknownRelease" {
		at := dibs.Position{ShardID: p.shard, Cursor: dibs.Cursor{Epoch: uint16(x.a % 4), Seq: x.b % 64}}
		if p.m.find(at.Cursor) == nil {
			err := p.eng.Release(p.ctx, dibs.Release{Claim: at, Epoch: p.ledger.epoch})
			p.is(err, "the release of "+at.String(), dibs.ErrNotFound)
		}
		return
	}
	g := p.pick(x.a)
	if g == nil {
		return
	}
	switch {
	case x.name == "staleRelease":
		// Of a claim that is released already, it would be a repeat too, and nil would be
		// right.
		if p.ledger.epoch > 1 && !g.Released {
			cmd := dibs.Release{Claim: g.Position, Epoch: p.ledger.epoch - 1}
			p.is(p.eng.Release(p.ctx, cmd), "a release of an older epoch", dibs.ErrStale)
		}
	// A released claim can only be released again, under each name of the operation.
	case g.Released:
		p.no(p.eng.Release(p.ctx, p.releaseOf(g.Grant)), "repeat the release of %v", g.Position)
	case x.name == "release":
		p.release(g.Grant)
		p.m.release(p.decidedAt(), g)
	}
}

// playCampaign moves the clock or changes the definition. An older version, here one
// that ends the campaign, must change nothing, so the model is not told of it.
func (p *player) playCampaign(x op) {
	older := *p.c
	switch x.name {
	case "clock":
		if !p.factory.OwnClock {
			p.setTime(p.time().Add(time.Duration(x.a%120_000) * time.Millisecond))
		}
		return
	case "older":
		older.State, older.LimitPerUser = dibs.EndedState, 1
		older.Version--
		p.no(p.eng.Configure(p.ctx, &older), "configure an older version")
		return
	case "pause":
		p.configure(func(c *dibs.Campaign) { c.State = dibs.PausedState })
	// The window opens as well, so that later claims are not all refused by it.
	case "resume":
		p.configure(func(c *dibs.Campaign) {
			c.State = dibs.Published
			window(p.rig, -time.Hour, time.Hour)(c)
		})
	case "window":
		// Open, over, or to come; by minutes, which a settable clock then passes.
		unit := time.Minute
		if p.factory.OwnClock {
			unit = time.Hour
		}
		from := time.Duration(int(x.a%5)-3)*unit + unit/2
		p.configure(window(p.rig, from, from+2*unit))
	case "limit":
		p.configure(func(c *dibs.Campaign) { c.LimitPerUser += int64(x.a % 2) })
	}
	for _, q := range p.all {
		q.m.c = q.c
	}
}

// playFind looks a place up: mostly one with a grant, sometimes one of the journal's
// other entries or of no entry.
func (p *player) playFind(x op) {
	at := dibs.Cursor{Epoch: uint16(x.a % 4), Seq: x.b % 64}
	if g := p.pick(x.b); g != nil && x.a%3 != 0 {
		at = g.Cursor
	}
	want := p.m.find(at)
	got, ok, err := p.eng.Find(p.ctx, dibs.Position{ShardID: p.shard, Cursor: at})
	p.no(err, "find %v", at)
	p.that(ok == (want != nil), "Find(%v) is %+v, %v, the model says %+v", at, got, ok, want)
	if ok {
		p.that(sameGrant(got, want.Grant) && got.Released == want.Released, "Find(%v) is %+v, the model says %+v", at, got, want.Grant)
	}
}

// playHoldings lists what a user holds, and compares it with the model's grants that
// are not released.
func (p *player) playHoldings(x op) {
	var want []dibs.Grant
	user := p.user(x.a)
	for _, q := range p.all {
		for _, g := range q.m.grants {
			if g.UserID == user && !g.Released {
				want = append(want, g.Grant)
			}
		}
	}
	p.holds(user, want...)
}

// playTail settles a part of the journal, trims what is settled, or restarts the
// engine by Close or by a kill. It settles before a restart, so that load and tail
// meet at a random place.
func (p *player) playTail(x op) {
	switch x.name {
	case "settle":
		p.settle(int(x.a % 30))
	case "trim":
		p.no(p.eng.TrimJournal(p.ctx, p.shard, p.ledger.position, p.later()), "trim up to %v", p.ledger.position)
		p.trimmed = p.ledger.position
	case "restart":
		p.settle(int(x.b % 10))
		p.restart(x.a%2 == 0)
		for _, q := range p.all {
			q.m.open(q.decidedAt())
		}
	default:
		p.fatalf("the operation %v is unknown", x)
	}
}

// finish compares the whole journal with the model's, then settles it and compares the
// ledger. The engine may have more of the journal than what is compared: trimming may
// leave what it was allowed to drop.
func (p *player) finish() {
	want := p.m.entries
	for len(want) > 0 && !p.trimmed.Before(want[0].Cursor) {
		want = want[1:]
	}
	got := p.journal(p.trimmed)
	p.that(len(got) == len(want), "the journal has %d entries after %v, the model %d", len(got), p.trimmed, len(want))
	for i, e := range got {
		p.sameEntry(e, want[i])
	}
	p.settle(math.MaxInt)
	equal(p.rig, "left in the ledger", p.ledger.left, p.m.left)
	equal(p.rig, "claims in the ledger", len(p.ledger.claims), len(p.m.grants))
	equal(p.rig, "free items in the ledger", len(p.ledger.free), len(p.m.free))
	for i, h := range p.ledger.claims {
		g := p.m.grants[i]
		p.that(h.Cursor == g.Cursor && h.UserID == g.UserID && h.Quantity == g.Quantity && h.Key == g.key && h.Released == g.Released,
			"the ledger has %+v, the model %+v", h, g)
	}
}

// sameEntry compares two entries. Items are compared as a set: the engine may list
// them in any order.
func (p *player) sameEntry(got, want dibs.Entry) {
	gotItems, wantItems := slices.Clone(got.Items), slices.Clone(want.Items)
	slices.Sort(gotItems)
	slices.Sort(wantItems)
	sameItems := slices.Equal(gotItems, wantItems)
	p.that(sameItems && got.Quantity == want.Quantity && got.Cursor == want.Cursor && got.Kind == want.Kind && got.At == want.At &&
		got.UserID == want.UserID && got.Key == want.Key && got.Reference == want.Reference &&
		got.PayBy == want.PayBy && got.Target == want.Target && got.Ref == want.Ref && got.Prev == want.Prev, "the journal has %+v, the model %+v", got, want)
}
