package live

import (
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
)

// Campaign is a campaign that the engine holds.
//
// Shards and recalled do not change once it is in the Registry; a campaign that gets more
// shards is another Campaign there. The definition only moves to newer versions. All other
// fields are atomic: any goroutine may read a Campaign, and none takes a lock for it.
type Campaign struct {
	campaign atomic.Pointer[dibs.Campaign]
	Shards   []*Shard
	// recalled says that the campaign may be over and is held all the same.
	recalled bool
	// counting is set while campaigns are looked for that share its limit per product.
	counting atomic.Bool
	// full is set while too much waits to be settled.
	full atomic.Bool
	// moving is set while units are on their way between shards, as they were seen
	// last: what carries them is settled at once then.
	moving atomic.Bool
	// dry is set while claims wait here for units of other shards.
	dry atomic.Bool
	// changes rises when this node, or another one as the engine tells, has changed
	// what a shard refuses with.
	changes atomic.Uint64
	// lowSince is since when the stock is known to be low, as the ledger has it.
	lowSince atomic.Int64
	// lacked is the version of a definition by which nothing is sold, a pause, that was seen
	// and not taken over, since it has more shards than are held here; 0 for none.
	lacked atomic.Int64
	// readAt is when the campaign was read last because of its version.
	readAt atomic.Int64
	// refused counts this node's answers by reason.
	refused [dibs.ReasonCount]atomic.Int64
}

// Def is the campaign's definition as this node knows it.
func (l *Campaign) Def() *dibs.Campaign { return l.campaign.Load() }

// IsFull reports whether so much waits to be settled that no new claim is taken.
func (l *Campaign) IsFull() bool { return l.full.Load() }

// CountRefusal counts a claim that was refused.
func (l *Campaign) CountRefusal(r dibs.Reason) { l.refused[r].Add(1) }

// Shard is the one of a number.
func (l *Campaign) Shard(n uint8) *Shard { return l.Shards[n] }

// Changes rises whenever this node has changed the stock of one of the shards, or the
// engine tells that another one has: what was concluded from all of them before may not
// hold any more.
func (l *Campaign) Changes() uint64 { return l.changes.Load() }

// SetDry notes whether claims wait on this node for units of other shards: what brings them
// comes before what was granted long ago.
func (l *Campaign) SetDry(wait bool) { l.dry.Store(wait) }

// underWay is the units that are on their way between the shards, as each was seen
// last. The shards were seen one after the other: it is what the pace goes by, not
// what is counted.
func (l *Campaign) underWay() (units int64) {
	if len(l.Shards) < 2 {
		return 0
	}
	for _, t := range l.Shards {
		if st := t.Seen(); st != nil {
			units += st.Moved
		}
	}
	return units
}

// NewCampaign returns a campaign that this node holds, without shards yet.
func NewCampaign(c *dibs.Campaign) *Campaign {
	l := &Campaign{}
	l.campaign.Store(c)
	return l
}

// Renew takes a definition over that is not older than the one known. One with other
// shards it leaves alone: the Loader takes those up, and until then the engine decides
// nothing by the definition before.
func (l *Campaign) Renew(c *dibs.Campaign) {
	if l.lacksShards(c) {
		if c.State != dibs.Published {
			l.lacked.Store(max(l.lacked.Load(), c.Version))
		}
		return
	}
	if old := l.Def(); old.Version <= c.Version {
		l.campaign.CompareAndSwap(old, c)
	}
}

// lacksShards reports whether the campaign has shards by a definition that are not held here.
func (l *Campaign) lacksShards(c *dibs.Campaign) bool {
	return len(l.Shards) > 0 && len(l.Shards) < c.Shards
}

// Version is that of the latest definition that the shards held here should obey. One that
// is sold by more shards they obey once those are held, too: until then this node would be
// refused by all of them. A pause they obey at once.
func (l *Campaign) Version() int64 { return max(l.Def().Version, l.lacked.Load()) }

// readEvery is how often a campaign is read from the ledger for shards of the engine that
// are of another version: they are looked at many times a second.
const readEvery = 250 * time.Millisecond

// mayRead reports whether a campaign may be read again because of its version, and notes
// that it is.
func (l *Campaign) mayRead() bool {
	now, last := time.Now().UnixNano(), l.readAt.Load()
	return now-last >= int64(readEvery) && l.readAt.CompareAndSwap(last, now)
}

// Wake makes the campaign's shards be looked at soon.
func (l *Campaign) Wake() {
	for _, t := range l.Shards {
		t.Wake()
	}
}

var tooManyLookups = dibs.Text{EN: "too many look-ups at once", ZH: "当前查询过多，请稍后重试"}
