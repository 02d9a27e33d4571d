package embedded

import "github.com/dibs-dev/dibs/gateway"

// OpenGateway makes the hub of the node's long-lived connections; its Service
// is set here, its Tickets when the engine can share them among nodes, and its
// Glance into waiting rooms. Drain and Close it before the node.
func (n *Node) OpenGateway(cfg gateway.Config) (*gateway.Hub, error) {
	cfg.Service = n.Service
	if shared, ok := n.Engine.(gateway.Tickets); ok && cfg.Tickets == nil {
		cfg.Tickets = shared
	}
	if n.Rooms != nil && cfg.Glance == nil {
		cfg.Glance = n.Rooms.Glance
	}
	return gateway.New(cfg)
}
