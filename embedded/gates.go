package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/room"
	"github.com/dibs-dev/dibs/ticket"
)

// gateKey is how many bytes the key has that signs tickets and admissions.
const gateKey = 32

// openGates makes what stands before the engine, and puts it behind the gates
// that the caller has. Every node of a ledger signs with the same key.
func (n *Node) openGates(ctx context.Context, cfg *Config, sc *dibs.Config) error {
	key, err := n.Ledger.Secret(ctx, "gate", gateKey)
	if err != nil {
		return fmt.Errorf("embedded: reading the key of tickets: %w", err)
	}
	if n.Tickets, err = ticket.New(ticket.Config{Key: key, HumanSecret: cfg.HumanSecret, Now: cfg.Now}); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	rc := room.Config{Ledger: n.Ledger, Key: key, Now: cfg.Now, Logger: cfg.Service.Logger}
	// An engine that nodes share keeps the places, too.
	rc.Redis, _ = n.Engine.(room.Redis)
	if n.Rooms, err = room.New(rc); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	// Limits are asked last: a claim that could not pass anyway takes nothing from
	// those who can.
	sc.Gates = append(slices.Clone(sc.Gates), n.Tickets, n.Rooms, n.Limits)
	return nil
}
