package enginetest

import (
	"errors"
	"math"

	"github.com/dibs-dev/dibs"
)

// divided opens a campaign over as many shards as the Factory asks for, each with the stock
// that the campaign has, and returns one of them. past writes the ledger of that one
// before its first load. A check on one shard must not change the others: see
// holdElsewhere.
func (r *rig) divided(c *dibs.Campaign, items []string, past func(l *ledger)) *offer {
	stock := c.Stock.Total
	if r.factory.Shards > 1 && c.Shards == 1 && c.LimitedProduct() == "" {
		c.Shards = r.factory.Shards
		c.Stock.Total *= int64(c.Shards)
	}
	shard := c.ShardOf("any")
	l := newLedger(c, shard, stock, items)
	past(l)
	o := r.openLedger(l)
	if c.Shards == 1 {
		return o
	}
	all := make([]*offer, c.Shards)
	for i := range all {
		if all[i] = o; i != int(shard.Shard) {
			all[i] = r.openShard(c, dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}, stock, items)
		}
	}
	for _, s := range all {
		s.all = all
	}
	return o
}

// fewer is how often something is done that is done on all shards at a time, and n times
// where there is one.
func (r *rig) fewer(n int) int { return max(1, n/max(1, r.factory.Shards)) }

// shards are all shards of the campaign.
func (o *offer) shards() []*offer {
	if o.all == nil {
		return []*offer{o}
	}
	return o.all
}

// of is the user's shard.
func (o *offer) of(user string) *offer {
	if o.all == nil {
		return o
	}
	return o.all[o.c.ShardOf(user).Shard]
}

// elsewhere is what a shard holds while the check is about another one: a claim, as it was
// decided, and the counts after it.
type elsewhere struct {
	first dibs.Decision
	after dibs.ShardStats
}

// The claim that a shard holds beside the one that a check is about.
const (
	elsewhereUser = "somebody on another shard"
	elsewhereKey  = 77
)

// holdElsewhere has one user claim on each other shard, once.
func (o *offer) holdElsewhere() {
	for _, s := range o.all {
		if s != o && s.elsewhere == nil {
			s.elsewhere = &elsewhere{first: s.claim(elsewhereUser, elsewhereKey, 1)}
			s.elsewhere.after = s.stats()
		}
	}
}

// untouched expects that the shards on which the check did nothing are as they were, also
// when they are loaded again.
func (r *rig) untouched() {
	if r.eng == nil {
		return
	}
	for _, o := range r.offers {
		if o.elsewhere == nil {
			continue
		}
		// A check that ended the engine may have opened its own shard alone.
		if _, err := o.eng.Stats(o.ctx, o.shard); !errors.Is(err, dibs.ErrNotOpen) {
			o.asElsewhere()
		}
		o.open()
		o.asElsewhere()
		o.settle(math.MaxInt)
	}
}

// asElsewhere expects that a shard is as holdElsewhere left it.
func (o *offer) asElsewhere() {
	o.counts(o.elsewhere.after.Remaining, o.elsewhere.after.Granted)
	if o.elsewhere.first.Outcome == dibs.Granted {
		o.replay(elsewhereKey, o.elsewhere.first.Grant)
	}
}
