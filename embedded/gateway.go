package embedded

import (
	"context"
	"math/bits"
	"time"

	"github.com/dibs-dev/dibs/gateway"
)

// OpenGateway makes the hub of the node's long-lived connections; its Service
// is set here, its Tickets when the engine can share them among nodes, and its
// Position, from the waiting rooms, when there is none. Drain and Close it before
// the node.
func (n *Node) OpenGateway(cfg gateway.Config) (*gateway.Hub, error) {
	cfg.Service = n.Service
	if shared, ok := n.Engine.(gateway.Tickets); ok && cfg.Tickets == nil {
		cfg.Tickets = shared
	}
	if cfg.Position == nil {
		cfg.Position = n.position
	}
	return gateway.New(cfg)
}

// position tells where a user waits, from this node's memory.
func (n *Node) position(_ context.Context, campaign, user string) (gateway.Position, bool) {
	c, ok := n.Service.HeldCampaign(campaign)
	if !ok {
		return gateway.Position{}, false
	}
	v, ok := n.Rooms.Glance(c, user)
	return gateway.Position{
		Place: v.Place, Ahead: max(0, v.Position-1), WaitMS: roughly(time.Duration(v.Estimate).Milliseconds()), Admission: v.Admission,
	}, ok
}

// roughly keeps a number's first three bits, upwards: a wait that goes by is told
// when it has become noticeably shorter, and not each time that it is looked at.
func roughly(ms int64) int64 {
	shift := max(0, bits.Len64(uint64(ms))-3)
	return (ms + 1<<shift - 1) >> shift << shift
}
