package live

import (
	"context"
	"time"

	"github.com/dibs-dev/dibs"
)

// fleetShard is the name of the fleet's own lease among those of the shards: no
// campaign has the number 0.
var fleetShard = dibs.ShardID{}

const (
	// The more shards stand still, the longer a node waits between two looks at each: the
	// node with the fleet's lease makes leaseLooks a second in all, every other node
	// otherLooks. But each shard is looked at once per pollIdle at most, and once per
	// leaseMost or otherMost at least. The node with the lease finds what a node granted
	// that died before it settled; to the others such a look only tells what they show.
	leaseLooks, leaseMost = 200, 5 * time.Second
	otherLooks, otherMost = 40, 30 * time.Second
)

// HasFleetLease reports whether this node is the one that looks after the shards
// that no node settles, and tidies up.
func (s *Poller) HasFleetLease() bool { return !s.engine.Shared() || s.fleetLease.Load() }

// keepFleetLease renews the fleet's lease in time, or tries to get it. Correctness never
// depends on it: two nodes that have it for a moment do the same twice.
func (s *Poller) keepFleetLease(ctx context.Context) {
	now := time.Now()
	if !s.engine.Shared() || now.Before(s.fleetLeaseAt) {
		return
	}
	s.fleetLeaseAt = now.Add(dibs.LeaseTime / 3)
	held, err := s.engine.Lease(ctx, fleetShard, dibs.Cursor{})
	if err != nil {
		// Where Redis does not answer, no node has anything to look after.
		return
	}
	if held && !s.fleetLease.Load() {
		// The node that had it before may have died with what it had granted.
		s.lookBy(now.Add(s.idlePace(true)))
	}
	s.fleetLease.Store(held)
}

// lookBy has every shard looked at before a time, in its turn.
func (s *Poller) lookBy(latest time.Time) {
	span := time.Until(latest)
	for t := range s.registry.eachShard {
		t.pace.by(latest, span)
	}
}

// idlePace is how often this node looks at a shard that stands still, by how
// many there are, and by whether it is the holder of the fleet lease.
func (s *Poller) idlePace(holder bool) time.Duration {
	looks, most := time.Duration(otherLooks), otherMost
	if holder {
		looks, most = leaseLooks, leaseMost
	}
	return min(max(time.Duration(s.polled.Load())*time.Second/looks, pollIdle), most)
}
