package embedded

import (
	"context"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/limit"
)

// OpenGateway makes the hub of the node's long-lived connections; its Service
// is set here, its Tickets when the engine can share them among nodes, and its
// Glance into waiting rooms. It tells what is announced. Drain and Close it before the node.
func (n *Node) OpenGateway(cfg gateway.Config) (*gateway.Hub, error) {
	cfg.Service = limited{n.Service, n.Limits}
	if shared, ok := n.Engine.(gateway.Tickets); ok && cfg.Tickets == nil {
		cfg.Tickets = shared
	}
	if n.Rooms != nil && cfg.Glance == nil {
		cfg.Glance = n.Rooms.Glance
	}
	hub, err := gateway.New(cfg)
	if err == nil {
		// A hub that is closed has nobody to tell.
		n.Service.WatchPushes(hub.TellPush)
	}
	return hub, err
}

// limited holds claims against the limits of the server first, as httpapi does.
type limited struct {
	*dibs.Service
	limits *limit.Limiter
}

// Claim implements gateway.Service.
func (l limited) Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error) {
	if res, ok := l.limits.Enter(ctx, &req); !ok {
		return res, nil
	}
	return l.Service.Claim(ctx, req)
}
