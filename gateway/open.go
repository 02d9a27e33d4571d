package gateway

import (
	"github.com/dibs-dev/dibs/node"
)

// Open makes the hub of a node's long-lived connections. It sets cfg's Claims and
// Snapshots, its Tickets when the engine can share them among nodes, and its Glance
// into waiting rooms. The hub tells what is announced. Drain and Close it before the
// node.
func Open(n *node.Node, cfg Config) (*Hub, error) {
	cfg.Claims, cfg.Limits, cfg.Snapshots = n.Claims, n.Limits, n.Live.Snapshots
	if shared := n.Engine.Abilities().Store; shared != nil && cfg.Tickets == nil {
		cfg.Tickets = &sharedTickets{shared, maxSharedTickets}
	}
	if n.Rooms != nil && cfg.Glance == nil {
		cfg.Glance = n.Rooms.Glance
	}
	hub, err := New(cfg)
	if err == nil {
		// A hub that is closed has nobody to tell.
		n.Announcements.Watch(hub.TellPush)
	}
	return hub, err
}
