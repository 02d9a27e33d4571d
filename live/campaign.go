package live

import (
	"sync/atomic"

	"github.com/dibs-dev/dibs"
)

// Campaign is a campaign that the engine holds.
type Campaign struct {
	campaign atomic.Pointer[dibs.Campaign]
	Shards   []*Shard
	// recalled says that the campaign may be over and is held all the same.
	recalled bool
	// full is set while too much waits to be settled.
	full atomic.Bool
	// lowSince is since when the stock is known to be low, as the ledger has it.
	lowSince atomic.Int64
	// refused counts this node's answers by reason.
	refused [dibs.ReasonCount]atomic.Int64
}

// Def is the campaign's definition as this node knows it.
func (l *Campaign) Def() *dibs.Campaign { return l.campaign.Load() }

// IsFull reports whether so much waits to be settled that no new claim is taken.
func (l *Campaign) IsFull() bool { return l.full.Load() }

// Refuse counts a claim that was refused.
func (l *Campaign) Refuse(r dibs.Reason) { l.refused[r].Add(1) }

// Shard is the one of a number.
func (l *Campaign) Shard(n uint8) *Shard { return l.Shards[n] }

// NewCampaign returns a campaign that this node holds, without shards yet.
func NewCampaign(c *dibs.Campaign) *Campaign {
	l := &Campaign{}
	l.campaign.Store(c)
	return l
}

// Renew takes a definition over that is not older than the one known.
func (l *Campaign) Renew(c *dibs.Campaign) {
	if old := l.Def(); old.Version <= c.Version {
		l.campaign.CompareAndSwap(old, c)
	}
}

// Rouse makes the campaign's shards be looked at soon.
func (l *Campaign) Rouse() {
	for _, t := range l.Shards {
		t.Rouse()
	}
}

var (
	tooManyLookups = dibs.Text{EN: "too many look-ups at once", ZH: "查询过于频繁"}
)
