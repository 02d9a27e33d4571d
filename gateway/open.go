package gateway

import (
	"context"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/limit"
	"github.com/dibs-dev/dibs/node"
)

// Open makes the hub of a node's long-lived connections. It sets cfg's Claims and
// Situations, its Tickets when the engine can share them among nodes, and its Glance
// into waiting rooms. The hub tells what is announced. Drain and Close it before the
// node.
func Open(n *node.Node, cfg Config) (*Hub, error) {
	cfg.Claims, cfg.Situations = limited{n.Claims, n.Limits}, n.Live.Situations
	if shared, ok := n.Engine.(Tickets); ok && cfg.Tickets == nil {
		cfg.Tickets = shared
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

// limited holds claims against the limits of the server first, as httpapi does.
type limited struct {
	claims Claims
	limits *limit.Limiter
}

// Claim implements Claims.
func (l limited) Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error) {
	if res, ok := l.limits.Enter(ctx, &req); !ok {
		return res, nil
	}
	return l.claims.Claim(ctx, req)
}
